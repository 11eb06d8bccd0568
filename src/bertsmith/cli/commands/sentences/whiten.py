"""`bertsmith sentences whiten`: whitened vectors as a folder."""

from __future__ import annotations

from typing import Annotated

from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.options import Json, ModelArgument, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.sentence_folders import (
    FolderOptions,
    ManyTextOptions,
    OutFolder,
    TextsArgument,
    change_line,
    change_record,
)
from bertsmith.setting import MODEL, Setting

Dim = Annotated[
    int | None,
    Setting("Dimensions of the vectors: those of most variance; all if unset.", MODEL, min=1),
]


@spread
def whiten(
    model: ModelArgument,
    texts: TextsArgument,
    out: OutFolder,
    reading: ManyTextOptions,
    folder: FolderOptions,
    dim: Dim = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Whiten the vectors of a model: mean 0, all directions of equal variance, on your texts.

    No labels are needed. Give texts like those that will be compared, many more than the vectors
    have dimensions: whitening on foreign or few texts does harm, and --pairs shows it. The folder
    gives the same vectors in sentence-transformers.

    Examples:

        bertsmith sentences whiten my-model texts.txt --out whitened

        bertsmith sentences whiten my-model pairs.csv --text 1 --text 2 --dim 128 --out whitened
    """
    from bertsmith.api.sentence_folders import run_whiten
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.wording import counted

    silent = quiet or as_json
    found = run_whiten(
        folder.job(model, out),
        reading.stream(texts, quiet=silent),
        keep=dim,
        observer=ConsoleObserver(quiet=silent),
    )
    if as_json:
        write_json(
            {
                "out": str(found.out),
                "texts": found.texts,
                "width": found.width,
                "kept": found.kept,
                "dead": found.dead,
                "pairs": change_record(found.change),
            }
        )
        return
    if found.cuts:
        note(found.cuts, quiet=quiet)
    dead = counted(found.dead, "direction")
    dropped = f"; {dead} without variance dropped" if found.dead else ""
    write_lines(
        [
            f"{found.out}: whitened on {found.texts:,} texts, {found.width} -> {found.kept} "
            f"dimensions{dropped}",
            *change_line(found.change),
        ]
    )
