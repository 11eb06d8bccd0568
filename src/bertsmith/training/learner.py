"""The frame of one training: a job, what learns it, the run of the loop, and its result.

A `Learner` is what a kind of training gives to the loop: it prepares model and workload from a job
and makes a result of the trained model. All else (resuming, the folder, stop requests, the loop) is
here, once for all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from torch import nn

from bertsmith.errors import ConfigError
from bertsmith.metrics import better
from bertsmith.training.checkpoints.checkpoint import SaveSettings, finish_folder
from bertsmith.training.checkpoints.resume import Fact, recorded
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import refuse_sharding
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings, Better
from bertsmith.training.loop.evaluate import Evaluation, EvaluationSettings
from bertsmith.training.loop.log import LogSettings
from bertsmith.training.loop.loop import train
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome, Run
from bertsmith.training.loop.schedule import LinearSettings, StableSettings
from bertsmith.training.loop.workload import Workload
from bertsmith.training.optimizers.optimizers import OptimizerSettings
from bertsmith.training.recipe import TrainingRecipe

# The loop records the optimizer itself; the others change nothing that is learned.
LEFT_OUT = ("about", "optimizer", "averaging", "save", "run")

Recipe = TypeVar("Recipe", bound=TrainingRecipe)
Rows = TypeVar("Rows")
Made = TypeVar("Made")


class LoopJob(Protocol):
    """Where a run of the loop goes, and which of its settings may have changed."""

    @property
    def out(self) -> Path | None:
        """The folder of the result; None: it stays in memory."""

    @property
    def accept(self) -> Collection[str]:
        """Settings whose change since the last checkpoint is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryJob:
    """A job that leaves nothing on disk."""

    out: Path | None = None
    accept: Collection[str] = ()


Job = TypeVar("Job", bound=LoopJob)


# Without slots: an alias with its types filled in, such as `FinetuneJob`, can then be called.
@dataclass(frozen=True, kw_only=True)
class TrainingJob(Generic[Recipe, Rows]):
    """What is to be learned, from what, and where the result goes: nowhere if `out` is None.

    `accept` names settings whose change since the last checkpoint is wanted.
    """

    recipe: Recipe
    task: str
    model: str
    rows: Rows
    out: Path | None = None
    accept: Collection[str] = ()

    @property
    def folder(self) -> Path:
        """Where the result goes, for what cannot be done in memory."""
        if self.out is None:
            raise ConfigError("this run has no folder; give `out`")
        return self.out


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInputs:
    """What the loop trains and how: all of a `Run` but its place and what it is executed on."""

    model: nn.Module
    workload: Workload
    schedule: LinearSettings | StableSettings
    optimizer: OptimizerSettings
    save: SaveSettings
    averaging: AveragingSettings
    evaluation: EvaluationSettings
    seed: int
    log: LogSettings = field(default_factory=LogSettings)
    evaluate: Callable[[], Evaluation] | None = None  # None: held-out losses of the workload
    evaluate_start: bool = False  # the weights of the start compete for the best, too
    best: BestSettings | None = None
    better: Better = better
    stages: Mapping[float, str] = field(default_factory=dict)
    spent: float = 0.0  # seconds of preparation

    @classmethod
    def of_recipe(
        cls,
        recipe: TrainingRecipe,
        model: nn.Module,
        workload: Workload,
        *,
        schedule: LinearSettings,
        rate: float,
        every: int,
        evaluate: Callable[[], Evaluation] | None,
    ) -> LoopInputs:
        """With all that a recipe says; `every`: the steps between two evaluations of dev rows.

        Without them the last weights are taken.
        """
        return cls(
            model=model,
            workload=workload,
            schedule=schedule,
            optimizer=recipe.optimizer.at(recipe.optimizer.lr or rate),
            save=recipe.save,
            averaging=recipe.averaging,
            evaluation=EvaluationSettings(held_out=0.0, every=every),
            seed=recipe.run.seed,
            evaluate=evaluate,
            evaluate_start=evaluate is not None,
            best=None if evaluate is None else recipe.best,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared(Generic[Made]):
    """What a learner builds from a job before its first step; `made` is what it needs to finish."""

    inputs: LoopInputs
    made: Made


class Finished(Protocol):
    """A trained model, and what is known of it."""

    @property
    def figures(self) -> dict[str, float] | None:
        """Figures of the development rows by the saved weights, the deciding one first."""

    @property
    def notes(self) -> Sequence[str]:
        """What became of the rows, for people."""

    def save(self, out: Path) -> None:
        """Put the model folder into `out`."""


Result = TypeVar("Result", bound=Finished)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained(Generic[Result]):
    """How a training ended; `finished` is None if it was stopped before its end."""

    outcome: Outcome
    finished: Result | None = None

    @property
    def dev_figures(self) -> dict[str, float] | None:
        """Figures of the development rows, if there are such and training has ended."""
        return None if self.finished is None else self.finished.figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner(Generic[Job, Made, Result]):
    """What a kind of training gives to the loop.

    `name` is how messages call it. `facts` are what a checkpoint records of a job besides what the
    loop records (see `Run`). `prepare` builds what is trained; if a stop request comes meanwhile,
    it gives how the run ended. `finish` makes the result of the trained model.
    """

    name: str
    facts: Callable[[Job, Execution], Mapping[str, Fact]]
    prepare: Callable[[Job, Execution, Watcher | None], Prepared[Made] | Outcome]
    finish: Callable[[Job, Made, Outcome, Execution], Result]


def run_job(
    learner: Learner[Job, Made, Result],
    job: Job,
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
) -> Trained[Result]:
    """Train, or resume training, and write the model folder with the chosen weights."""
    execution = execution or Execution()
    refuse_sharding(execution.ranks, learner.name)
    prepared = learner.prepare(job, execution, watch)
    if isinstance(prepared, Outcome):
        return Trained(outcome=prepared)
    facts = learner.facts(job, execution)
    outcome = train(loop_run(job, prepared.inputs, facts, execution, watch))
    if outcome.status != "finished":
        return Trained(outcome=outcome)
    finished = learner.finish(job, prepared.made, outcome, execution)
    finish_folder(job.out, finished.save, execution.ranks)
    return Trained(outcome=outcome, finished=finished)


def loop_run(
    job: LoopJob,
    inputs: LoopInputs,
    facts: Mapping[str, Fact],
    execution: Execution,
    watch: Watcher | None,
) -> Run:
    """The run of the loop of a job."""
    return Run(
        folder=job.out,
        model=inputs.model,
        workload=inputs.workload,
        schedule=inputs.schedule,
        optimizer=inputs.optimizer,
        save=inputs.save,
        evaluation=inputs.evaluation,
        averaging=inputs.averaging,
        log=inputs.log,
        seed=inputs.seed,
        facts=facts,
        accept=frozenset(job.accept),
        execution=execution,
        watch=watch,
        spent=inputs.spent,
        evaluate=inputs.evaluate,
        best=inputs.best,
        evaluate_start=inputs.evaluate_start,
        better=inputs.better,
        stages=inputs.stages,
    )


def job_facts(
    job: TrainingJob[Recipe, Rows],
    execution: Execution,
    more: Mapping[str, Fact],
    *,
    without: Collection[str] = (),
) -> dict[str, Fact]:
    """The facts of a job: recipe (but for these sections), task, model, precision and `more`."""
    return {
        **recorded(job.recipe, without=(*LEFT_OUT, *without)),
        "task": job.task,
        "model": job.model,
        **more,
        "precision": execution.precision.name,
    }
