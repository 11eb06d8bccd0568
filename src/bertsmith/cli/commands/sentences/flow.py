"""`bertsmith sentences flow`: vectors mapped to a Gaussian, as a folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from bertsmith.setting import MODEL, TRAINING, Setting
from bertsmith.wording import counted

if TYPE_CHECKING:
    from bertsmith.api.sentence_folders import Corrected

Steps = Annotated[int, Setting("Steps of the flow.", MODEL, min=1)]
Hidden = Annotated[int, Setting("Hidden units of each coupling.", MODEL, min=1)]
FlowStart = Annotated[
    Literal["rotated", "whitened"],
    Setting(
        "rotated: a random rotation, as BERT-flow; whitened: begins as whitening, likelier.", MODEL
    ),
]
FlowDim = Annotated[
    int | None,
    Setting("Dimensions of the vectors: those of most variance; all if unset.", MODEL, min=2),
]
FlowEpochs = Annotated[int, Setting("Number of training epochs.", TRAINING, min=1)]
FlowRate = Annotated[float, Setting("Learning rate; it falls to 0.", TRAINING)]
FlowSeed = Annotated[int, Setting("Random seed.", TRAINING, min=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOptions:
    """How a flow is built and learned."""

    flow_steps: Steps = 4
    hidden: Hidden = 32
    initial: FlowStart = "rotated"
    dim: FlowDim = None
    epochs: FlowEpochs = 12
    lr: FlowRate = 1e-3
    seed: FlowSeed = 0


@spread
def flow(
    model: ModelArgument,
    texts: TextsArgument,
    out: OutFolder,
    reading: ManyTextOptions,
    learning: FlowOptions,
    folder: FolderOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn an invertible map of a model's vectors to a Gaussian, without labels (BERT-flow).

    A tenth of the texts is held out: how likely the flow and plain whitening find those is printed
    in nats per dimension, lower is better. The likelier one is not always the more similar to what
    people say: give --pairs. Needs sentence-transformers 5.7 or later to be loaded there.

    Example:

        bertsmith sentences flow my-model texts.txt --pairs dev.csv --out flowed
    """
    from bertsmith.api.sentence_folders import run_flow
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.sentences.transform.flow import FlowSettings

    silent = quiet or as_json
    settings = FlowSettings(
        steps=learning.flow_steps,
        hidden=learning.hidden,
        start=learning.initial,
        keep=learning.dim,
        epochs=learning.epochs,
        rate=learning.lr,
        seed=learning.seed,
    )
    found = run_flow(
        folder.job(model, out),
        reading.stream(texts, quiet=silent),
        settings,
        observer=ConsoleObserver(quiet=silent),
    )
    if as_json:
        write_json(_record(found))
        return
    if found.cuts:
        note(found.cuts, quiet=quiet)
    write_lines([*_lines(found), *change_line(found.change)])


def _record(found: Corrected) -> dict[str, Any]:
    record: dict[str, Any] = {
        "out": str(found.out),
        "texts": found.texts,
        "width": found.width,
        "kept": found.kept,
        "dead": found.dead,
        "pairs": change_record(found.change),
    }
    if fit := found.flow:
        names = ("learned_from", "held_out", "nll", "whitening_nll")
        record |= {name: getattr(fit, name) for name in names}
    return record


def _lines(found: Corrected) -> list[str]:
    dead = counted(found.dead, "direction")
    dropped = f"; {dead} without variance dropped" if found.dead else ""
    lines = [
        f"{found.out}: a flow on {found.texts:,} texts, {found.width} -> {found.kept} "
        f"dimensions{dropped}"
    ]
    if fit := found.flow:
        better = "the flow" if fit.nll < fit.whitening_nll else "whitening"
        lines.append(
            f"nats per dimension on {fit.held_out:,} texts held out: flow {fit.nll:.4f}, whitening "
            f"{fit.whitening_nll:.4f} (lower is better); {better} describes new texts better"
        )
    return lines
