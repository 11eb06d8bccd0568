"""`bertsmith correct`: spelling mistakes in a text or the rows of a file, corrected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import note, write_json, write_json_lines, write_lines
from bertsmith.cli.shared.data_options import FirstRows, TextOptions, is_data_file
from bertsmith.cli.shared.options import Device, Json, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.setting import MODEL, OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.runtime.corrector import Corrector
    from bertsmith.runtime.row_files import RowSource

What = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR FILE|TEXT",
        help="Folder of a corrector, then a file, a text, or - for stdin.",
    ),
]
Threshold = Annotated[
    float | None,
    Setting(
        "Least probability of a change; as tuned in training if unset.", MODEL, min=0.0, max=1.0
    ),
]
Diff = Annotated[bool, Setting("Show changes in place: [-wrong-]{+right+}.", OUTPUT)]
Out = Annotated[
    Path | None,
    Setting(
        "Output: rows of a file with their corrections, .jsonl, .csv or .tsv; JSONL to stdout if "
        "unset.",
        OUTPUT,
        metavar="FILE",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectOutput:
    """Where corrections go, and in which form."""

    out: Out = None
    diff: Diff = False
    as_json: Json = False
    quiet: Quiet = False


@spread
def correct(
    what: What,
    reading: TextOptions,
    output: CorrectOutput,
    threshold: Threshold = None,
    rows: FirstRows = None,
    device: Device = "cpu",
) -> None:
    """Correct spelling mistakes in Chinese text: one character for one, nothing else is touched.

    The model comes from `bertsmith finetune pairs.tsv --task correct`. A file may have any size;
    its columns are kept, and the same command resumes after an interruption.

    Examples:

        bertsmith correct my-corrector "他每天坐公交车去上斑"

        bertsmith correct my-corrector "他每天坐公交车去上斑" --diff

        bertsmith correct my-corrector letters.txt --out corrected.jsonl
    """
    from bertsmith.labeled.texts import spooled_input
    from bertsmith.runtime.corrector import load_corrector

    if len(what) != 2:
        raise ConfigError(
            "give the folder of a corrector, and a file or a text in quotes: "
            'bertsmith correct my-corrector "..."'
        )
    folder, given = what
    from_file = given == "-" or is_data_file(given)
    if from_file and (output.diff or output.as_json):
        name = "--diff" if output.diff else "--json"
        raise ConfigError(f"{name} is for a single text; rows of a file have their edits as JSON")
    if output.out is not None and not from_file:
        raise InputFileError(f"{given} is read as a text; --out is for files")
    corrector = load_corrector(folder, device=device)
    least = corrector.threshold if threshold is None else threshold
    if given == "-":
        with spooled_input() as spooled:
            spec = reading.spec(rows)
            spec = spec if spec.format else spec.model_copy(update={"format": "lines"})
            _file(corrector, folder, _source(spooled, spec, reading, output), least, output)
    elif from_file:
        source = _source(Path(given), reading.spec(rows), reading, output)
        _file(corrector, folder, source, least, output)
    else:
        _one(corrector, given, least, output)


def _one(corrector: Corrector, text: str, threshold: float, output: CorrectOutput) -> None:
    from bertsmith.cli.views.corrected import marked

    if not text.strip():
        raise ConfigError("the text is empty; give one in quotes")
    (found,) = corrector.correct([text], threshold=threshold)
    if output.as_json:
        write_json(found.to_json())
        return
    write_lines([marked(found) if output.diff else found.corrected])
    for edit in found.edits:
        note(f"{edit.start}: {edit.wrong} -> {edit.right} ({edit.score:.2f})", quiet=output.quiet)


def _source(path: Path, given: DataSpec, reading: TextOptions, output: CorrectOutput) -> RowSource:
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.correction.correct_files import OWN_CORRECTED
    from bertsmith.labeled.texts import text_spec
    from bertsmith.runtime.row_files import check_rows, kind_of

    kind = "jsonl" if output.out is None else kind_of(output.out)
    spec = text_spec(path, given).model_copy(update={"empty": None})  # empty texts stay as they are
    observer = ConsoleObserver(quiet=output.quiet)
    observer.data(path, spec)
    source = check_rows(
        path, spec, OWN_CORRECTED, on_error=reading.on_error, every_column=kind != "jsonl"
    )
    for remark in source.account.notes():
        observer.note(f"{path.name}: {remark}")
    return source


def _file(
    corrector: Corrector, folder: str, source: RowSource, threshold: float, output: CorrectOutput
) -> None:
    from bertsmith.cli.views.progress import meter
    from bertsmith.correction.correct_files import correct_file, corrected_lines
    from bertsmith.folders.keys import model_key

    if output.out is None:
        for lines in corrected_lines(corrector, source, threshold=threshold):
            write_json_lines(lines)
        return
    try:
        with meter("correct", quiet=output.quiet) as shown:
            done = correct_file(
                corrector,
                source,
                output.out,
                model=model_key(folder),
                threshold=threshold,
                watch=lambda rows, total: shown(rows, rows / total if total else None),
            )
    except (KeyboardInterrupt, SystemExit):
        note("stopped; the same command resumes from the last rows written", quiet=output.quiet)
        raise
    if done.replaced:
        note(
            "started over: the unfinished output was of other rows, options or another model",
            quiet=output.quiet,
        )
    if done.resumed:
        note(f"resumed after {done.resumed:,} rows of an earlier run", quiet=output.quiet)
    write_lines(
        [
            f"{output.out}: {done.rows:,} of {source.account.rows_in:,} rows, {done.changed:,} "
            f"changed by {done.edits:,} edits"
        ]
    )
