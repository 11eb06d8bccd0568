"""Kinds of training: a request is read, trained, evaluated and reported in one way for all.

A `TrainingKind` is a record of functions: what it reads, its learner, what it proves of the result.
Nothing here asks which kind it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol

from markupsafe import Markup

from bertsmith.config import Overrides
from bertsmith.errors import ConfigError
from bertsmith.labeled.pairs.splits import PairFiles
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import USUAL
from bertsmith.report.result import ResultView, plain_result
from bertsmith.report.training_page import write_training_page
from bertsmith.training.execution.execution import Execution
from bertsmith.training.learner import (
    Learner,
    Recipe,
    Result,
    Rows,
    Trained,
    TrainingJob,
    run_job,
)
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.record import Making, Record, write_record
from bertsmith.training.repeat.repeat import RepeatedRuns, train_seeds
from bertsmith.training.repeat.trials import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRequest:
    """What to train on what; everything but `data`, `model` and `out` has a default.

    `overrides` are settings laid over the recipe, `spec` is what is known of the columns,
    `files` names dev or test files that are not in `data`, `shares` how one file is split. Of
    several `seeds` (or `folds` of the training rows) the best by the dev rows is saved.
    """

    data: Path
    model: str
    out: Path
    recipe: str | Path | None = None
    overrides: Overrides = ()
    accept: Sequence[str] = ()
    spec: DataSpec = field(default_factory=DataSpec)
    on_error: OnError = "stop"
    files: Mapping[str, Path] = field(default_factory=dict)
    shares: Sequence[float] = USUAL
    split_seed: int = 0
    seeds: int = 1
    folds: int | None = None
    device: str | None = None

    def pair_files(self) -> PairFiles:
        """The files, for kinds that read pairs of texts."""
        return PairFiles(
            data=self.data,
            spec=self.spec,
            on_error=self.on_error,
            also=self.files,
            shares=self.shares,
            split_seed=self.split_seed,
        )


class Audience(Protocol):
    """What hears of a training while it runs."""

    def note(self, message: str) -> None:
        """A remark for people."""

    def data(self, path: Path, spec: DataSpec) -> None:
        """How a file is read."""

    def lines(self, lines: Sequence[str]) -> None:
        """Findings about the rows."""

    def training(self) -> AbstractContextManager[Watcher | None]:
        """Entered while a model is trained; gives what is called with the progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[Recipe]):
    """What a kind reads its rows from: the request and its recipe, as it was written."""

    request: TrainingRequest
    recipe: Recipe
    execution: Execution
    audience: Audience


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeating:
    """How several runs of one job are made."""

    folds: int
    request: TrainingRequest
    execution: Execution
    watch: Watcher | None
    notice: Notice


def _nothing(job: object, execution: Execution, audience: Audience) -> Outcome | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingKind(Generic[Recipe, Rows, Result]):
    """One kind of training; `name` is stored in its records.

    recipe: the settings of a request. check: refuses what cannot be done, before rows are read.
    read: rows, and the job on them. learner: a new one, shared by the runs of several seeds.
    prove: the sections of the record, from the folder as it lies on disk. sections: the page of a
    record. result: what a terminal shows of it. folds: cross-validation, if there is one. further:
    what else is trained for the comparison with it; how that ended, None if there is nothing.
    documents: further files by name, from the record and the name of the folder.
    """

    name: str
    recipe: Callable[[TrainingRequest], Recipe]
    check: Callable[[TrainingRequest, Recipe], object]
    read: Callable[[Reading[Recipe]], TrainingJob[Recipe, Rows]]
    learner: Callable[[], Learner[TrainingJob[Recipe, Rows], Any, Result]]
    prove: Callable[[Making[Recipe, Rows, Result]], Mapping[str, Any]]
    sections: Callable[[Record], list[Markup]]
    result: Callable[[Record], ResultView] = plain_result
    folds: Callable[[TrainingJob[Recipe, Rows], Repeating], RepeatedRuns[Result]] | None = None
    further: Callable[[TrainingJob[Recipe, Rows], Execution, Audience], Outcome | None] = _nothing
    documents: Callable[[Record, str], Mapping[str, str]] = lambda record, name: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingEnd:
    """How a training ended; record and page are None if it was stopped, or on further ranks."""

    outcome: Outcome
    record: Record | None = None
    page: Path | None = None


def check_request(
    kind: TrainingKind[Recipe, Rows, Result], request: TrainingRequest, recipe: Recipe
) -> None:
    """Refuse what cannot be done before anything is read."""
    if request.folds is not None:
        if request.seeds > 1:
            raise ConfigError("give seeds or folds, not both")
        if kind.folds is None:
            raise ConfigError(
                f"--folds is for labeled rows, and the task {request.spec.task or kind.name} has "
                "none; leave it out; --seeds trains several times, too"
            )
    kind.check(request, recipe)


def run_training(
    kind: TrainingKind[Recipe, Rows, Result],
    request: TrainingRequest,
    recipe: Recipe,
    *,
    execution: Execution,
    audience: Audience,
) -> TrainingEnd:
    """Read, train, evaluate and report, as the request says."""
    job = kind.read(Reading(request=request, recipe=recipe, execution=execution, audience=audience))
    trained, run, several = _trained(kind, request, job, execution, audience)
    outcome, finished = trained.outcome, trained.finished
    if finished is not None:
        ended = kind.further(job, execution, audience)
        outcome = outcome if ended is None or ended.status == "finished" else ended
    if finished is None or outcome.status == "stopped" or not execution.ranks.is_first:
        return TrainingEnd(outcome=outcome)
    for remark in finished.notes:
        audience.note(remark)
    making = Making(
        job=job,
        run=run,
        outcome=outcome,
        finished=finished,
        execution=execution,
        several=several,
    )
    record = write_record(kind.name, making, kind.prove(making))
    documents = kind.documents(record, job.folder.name)
    page = write_training_page(job.folder, kind.sections(record), documents)
    return TrainingEnd(outcome=outcome, record=record, page=page)


def _trained(
    kind: TrainingKind[Recipe, Rows, Result],
    request: TrainingRequest,
    job: TrainingJob[Recipe, Rows],
    execution: Execution,
    audience: Audience,
) -> tuple[Trained[Result], Path, dict[str, Any]]:
    """How training ended, the folder of the chosen run, and what several runs add to the record."""
    with audience.training() as watch:
        if request.folds is not None and kind.folds is not None:
            repeating = Repeating(
                folds=request.folds,
                request=request,
                execution=execution,
                watch=watch,
                notice=audience.note,
            )
            many = kind.folds(job, repeating)
        elif request.seeds > 1:
            first = job.recipe.run.seed
            many = train_seeds(
                kind.learner(),
                job,
                range(first, first + request.seeds),
                execution=execution,
                watch=watch,
                notice=audience.note,
            )
        else:
            one = run_job(kind.learner(), job, execution=execution, watch=watch)
            return one, job.folder, {}
    if many.best is None:
        return many.trained, job.folder, {}
    return many.trained, many.best.folder, many.to_json()
