"""A fine-tuned folder as predict, evaluate and compare load and ask it: on what, how exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bertsmith.labeled.example import Example
    from bertsmith.runtime.predictor import Predictor
    from bertsmith.tasks.prediction import Prediction

CHUNK = 256  # rows between two looks at the clock
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, help="Cores to use; all if unset.")
]
Device = Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, mps.")]
Together = Annotated[
    bool,
    typer.Option("--ensemble", help="Average all runs of the folder (finetune --seeds, --folds)."),
]
Precision = Annotated[
    Literal["auto", "fp32", "bf16"],
    typer.Option("--precision", help="auto: the fastest path proven here; fp32: exact everywhere."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Computing:
    """What it is computed on: as fast as this machine can."""

    precision: Precision = "auto"
    threads: Threads = None
    device: Device = "cpu"
    ensemble: Together = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactComputing(Computing):
    """The same for a judgement: no rounding unless it is asked for."""

    precision: Precision = "fp32"


def ask_all(
    predictor: Predictor, examples: Sequence[Example], title: str, *, quiet: bool
) -> list[Prediction]:
    """What a model says of rows, while a meter shows how far it is."""
    from bertsmith.cli.shared.console import meter

    said: list[Prediction] = []
    with meter(title, quiet=quiet) as shown:
        for _, one in predictor.stream(examples, chunk=CHUNK):
            said.append(one)
            if len(said) % CHUNK == 0:  # the answers of a chunk come at once, after all of it
                shown.update(len(said), len(said) / len(examples))
    return said


def load_fine_tuned(folder: str, computing: Computing, *, quiet: bool) -> Predictor:
    """The predictor of a folder, on the cores and in the precision that were asked for."""
    import torch

    from bertsmith.cli.shared.console import note
    from bertsmith.hardware.environment import thread_count
    from bertsmith.runtime.ensemble import load_ensemble
    from bertsmith.runtime.predictor import load_predictor

    torch.set_num_threads(computing.threads or thread_count())
    if computing.ensemble:
        return load_ensemble(
            [folder],
            device=computing.device,
            precision=computing.precision,
            threads=computing.threads,
        )
    return load_predictor(
        folder,
        device=computing.device,
        precision=computing.precision,
        threads=computing.threads,
        notice=lambda message: note(message, quiet=quiet),
    )
