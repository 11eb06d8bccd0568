"""A training run: model, workload and settings, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from torch import nn

from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.checkpoints.resume import Fact
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings, Better, larger
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings, evaluate_losses
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.schedule import LinearSettings, StableSettings
from bertsmith.training.loop.workload import Workload
from bertsmith.training.optimizers.optimizers import AdamWSettings, OptimizerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is trained, on what, how and where; the same run again resumes.

    Without a `folder` everything stays in memory: no lock, no checkpoints, no log files.
    `facts` are settings by dotted name, with the hashes of data and vocabulary and the precision:
    a checkpoint records them, and a resumed run is refused when one that matters has changed,
    unless its name is in `accept`.
    """

    folder: Path | None
    model: nn.Module
    workload: Workload
    schedule: LinearSettings | StableSettings
    optimizer: OptimizerSettings = field(default_factory=AdamWSettings)
    save: SaveSettings = field(default_factory=SaveSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    averaging: AveragingSettings = field(default_factory=AveragingSettings)
    log: LogSettings = field(default_factory=LogSettings)
    seed: int = 0
    facts: Mapping[str, Fact] = field(default_factory=dict)
    accept: frozenset[str] = frozenset()
    execution: Execution = field(default_factory=Execution)
    watch: Watcher | None = None
    spent: float = 0.0  # seconds of preparation that count as time of the run
    evaluate: Callable[[], Evaluation] | None = None  # None: held-out losses of the workload
    best: BestSettings | None = None  # keep the best weights by a metric of `evaluate`
    evaluate_start: bool = False  # the weights of the start compete for the best, too
    better: Better = larger  # how two values of that metric are compared
    stages: Mapping[float, str] = field(default_factory=dict)  # the share each ends at, its name


STOPPED = 75  # EX_TEMPFAIL: the state is saved, the same command resumes


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run, whose model then holds the chosen weights."""

    status: Literal["finished", "stopped"]
    step: int
    tokens: int
    seconds: float
    signal: str | None = None  # that stopped it
    last: Evaluation | None = None  # of the last weights
    average: Evaluation | None = None  # of their average over the last steps, if there is one
    best: Evaluation | None = None  # of the best weights, if `Run.best` is set
    chosen: Literal["last", "average", "best"] = "last"
    stages: tuple[Mapping[str, Any], ...] = ()  # the evaluation at the end of each of `Run.stages`

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation of the chosen weights."""
        return {"last": self.last, "average": self.average, "best": self.best}[self.chosen]

    @property
    def exit_code(self) -> int:
        """0 when finished; 75 when stopped and saved, so that the same command resumes."""
        return 0 if self.status == "finished" else STOPPED


def evaluate_run(run: Run) -> Evaluation | None:
    """Evaluate the model as it is now; None when nothing is held out."""
    if run.evaluate is not None:
        return run.evaluate()
    return evaluate_losses(run.model, run.workload, run.execution)
