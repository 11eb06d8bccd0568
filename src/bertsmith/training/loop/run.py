"""A run as the loop sees it, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, Precision, evaluate
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.schedule import LinearSettings, StableSettings
from bertsmith.training.loop.signals import STOPPED
from bertsmith.training.loop.workload import Ranks, SingleRank, Work
from bertsmith.training.optimizers.optimizers import AdamWSettings, OptimizerSettings

Judge = Callable[[], Evaluation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is trained, on what, how and where; the same run again goes on where it was.

    `facts` are settings by dotted name, with the hashes of data and vocabulary and the precision:
    a checkpoint records them, and a resumed run is refused when one that matters has changed,
    unless its name is in `accept`.
    """

    folder: Path
    model: nn.Module
    work: Work
    schedule: LinearSettings | StableSettings
    optimizer: OptimizerSettings = field(default_factory=AdamWSettings)
    save: SaveSettings = field(default_factory=SaveSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    averaging: AveragingSettings = field(default_factory=AveragingSettings)
    log: LogSettings = field(default_factory=LogSettings)
    seed: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)
    accept: frozenset[str] = frozenset()
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    ranks: Ranks = field(default_factory=SingleRank)
    precision: Precision = nullcontext
    watch: Watcher | None = None
    spent: float = 0.0  # seconds that went into its preparation, which its clock counts
    judge: Judge | None = None  # how held-out text is judged; None: by its losses
    best: BestSettings | None = None  # keep the best weights by a figure of `judge`


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended; the model of the run then holds the chosen weights."""

    status: Literal["finished", "stopped"]
    step: int
    tokens: int
    seconds: float
    signal: str | None = None  # that stopped it
    last: Evaluation | None = None  # held-out figures of the last weights
    average: Evaluation | None = None  # and of the mean of the last part, if there is one
    best: Evaluation | None = None  # and of the best weights, if they were kept
    chosen: Literal["last", "average", "best"] = "last"

    @property
    def evaluation(self) -> Evaluation | None:
        """Held-out figures of the chosen weights."""
        return {"last": self.last, "average": self.average, "best": self.best}[self.chosen]

    @property
    def exit_code(self) -> int:
        """0 when finished; 75 when stopped and saved, so that the same command goes on."""
        return 0 if self.status == "finished" else STOPPED


def judged(run: Run) -> Evaluation | None:
    """What held-out text says of the model as it is now; None when there is no such text."""
    if run.judge is not None:
        return run.judge()
    return evaluate(run.model, run.work, run.ranks, device=run.device, precision=run.precision)
