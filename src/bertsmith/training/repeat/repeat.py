"""Several runs of one job (seeds or folds): each is finished once, the best is chosen."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, Literal

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.files.strict_json import json_values, write_json
from bertsmith.folders.runs import FIGURES
from bertsmith.metrics import better
from bertsmith.metrics.significance import over_seeds
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
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
from bertsmith.training.repeat.trials import (
    Notice,
    Trial,
    TrialResult,
    held,
    job_key,
    run_trials,
)

log = logging.getLogger(__name__)

CHOSEN = "chosen.json"  # which of the runs the folder above them holds
Figures = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition(Generic[Result]):
    """One of several runs: its folder, a digest of all that decides its result, how it is run."""

    folder: Path
    key: str
    run: Callable[[Watcher | None], Trained[Result]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRun:
    """A finished run: its seed or the number of its fold, its folder, its development figures."""

    number: int
    folder: Path
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRuns(Generic[Result]):
    """Several runs of one job; `trained` is the best of them by its development figure.

    The folder of the job then holds the model of `best`. If a signal stopped a run, `trained` is
    this run, and there is no best one yet.
    """

    kind: Literal["seeds", "folds"]
    members: tuple[RepeatedRun, ...]
    trained: Trained[Result]
    best: RepeatedRun | None = None
    whole: Figures | None = None  # folds: of all rows, each predicted by the run that never saw it

    @property
    def outcome(self) -> Outcome:
        """How the best run ended, or the one that was stopped."""
        return self.trained.outcome

    @property
    def interval(self) -> dict[str, dict[str, float | int | None]]:
        """Mean, deviation and Student's 95 % interval of the mean of every figure."""
        shared = [name for name in self.members[0].figures if self._has(name)]
        return {
            name: json_values(asdict(over_seeds([one.figures[name] for one in self.members])))
            for name in shared
        }

    def to_json(self) -> dict[str, Any]:
        """`seeds` and `interval`, or `folds`, as the record of a run has them."""
        runs = [
            {self.kind.removesuffix("s"): one.number, "figures": json_values(one.figures)}
            for one in self.members
        ]
        chosen = self.best.number if self.best else None
        if self.kind == "seeds":
            return {"seeds": runs, "interval": self.interval, "chosen": chosen}
        folds = {"runs": runs, "figures": json_values(self.whole or {}), "interval": self.interval}
        return {"folds": {"count": len(runs), **folds, "chosen": chosen}}

    def _has(self, name: str) -> bool:
        return all(name in one.figures for one in self.members)


def train_seeds(
    learner: Learner[TrainingJob[Recipe, Rows], Any, Result],
    job: TrainingJob[Recipe, Rows],
    seeds: Sequence[int],
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns[Result]:
    """Train with each seed, in OUT/seeds/SEED; finished runs are not repeated.

    OUT gets the model of the seed with the best development figure. `notice` receives the progress.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {list(seeds)}: give one or more, each once")
    jobs = {
        seed: replace(
            job,
            recipe=changed(job.recipe, {"run.seed": seed}),
            out=job.folder / "seeds" / str(seed),
        )
        for seed in seeds
    }
    execution = execution or Execution()
    with held(job.folder, execution.ranks):
        return run_repeated(
            "seeds",
            job.folder,
            {seed: repetition(learner, one, execution) for seed, one in jobs.items()},
            metric=job.recipe.best.figure,
            execution=execution,
            watch=watch,
            notice=notice,
        )


def run_repeated(
    kind: Literal["seeds", "folds"],
    folder: Path,
    runs: Mapping[int, Repetition[Result]],
    *,
    metric: str | None,
    execution: Execution,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns[Result]:
    """Every run that is not finished, in a folder that is `held` and gets the model of the best.

    `metric` decides which run is best: the first of their figures if it is None.
    """
    trained: dict[int, Trained[Result]] = {}  # the best only, to hold no more models in memory
    trials = {
        number: _trial(f"{kind.removesuffix('s')} {number}", number, one, trained, metric)
        for number, one in runs.items()
    }
    done = run_trials(
        list(trials.values()),
        folder,
        ranks=execution.ranks,
        watch=None if watch is None else lambda look: watch(look.run),
        notice=notice,
    )
    by_name = {result.name: result.figures for result in done.rows}
    members = tuple(
        RepeatedRun(number=number, folder=one.folder, figures=_numbers(by_name[name]))
        for number, one in runs.items()
        if (name := trials[number].name) in by_name
    )
    if done.stopped is not None:
        return RepeatedRuns(kind=kind, members=members, trained=Trained(outcome=done.stopped))
    best = members[0]
    for member in members[1:]:
        if _is_better(metric, member.figures, best.figures):
            best = member
    chosen = trained.get(best.number) or runs[best.number].run(watch)
    result = chosen.finished
    if result is None:
        raise ConfigError(f"{best.folder} was stopped before its end; run the same command again")

    def save() -> None:
        result.save(folder)
        write_json(folder / CHOSEN, _note(best, folder, metric))

    on_first(execution.ranks, save)
    notice(f"{folder} holds the model of {trials[best.number].name}")
    return RepeatedRuns(kind=kind, members=members, trained=chosen, best=best)


def repetition(
    learner: Learner[TrainingJob[Recipe, Rows], Any, Result],
    job: TrainingJob[Recipe, Rows],
    execution: Execution,
) -> Repetition[Result]:
    """A job as one of several runs."""
    return Repetition(
        folder=job.folder,
        key=job_key(learner, job, execution),
        run=lambda watch: run_job(learner, job, execution=execution, watch=watch),
    )


def _trial(
    name: str,
    number: int,
    one: Repetition[Result],
    trained: dict[int, Trained[Result]],
    metric: str | None,
) -> Trial:
    """A run as a trial, which replaces the one in `trained` if it is better."""

    def run(watch: Watcher | None) -> TrialResult | Outcome:
        done = one.run(watch)
        if done.finished is None:
            return done.outcome
        figures = done.dev_figures
        if figures is None:
            raise ConfigError(
                "several runs are compared by dev rows, and there are none; give --dev"
            )
        if all(_is_better(metric, figures, r.dev_figures or {}) for r in trained.values()):
            trained.clear()
            trained[number] = done
        return TrialResult(name=name, figures=figures, seconds=done.outcome.seconds)

    return Trial(name=name, key=one.key, run=run, record=one.folder / FIGURES)


def _is_better(metric: str | None, new: Figures, old: Figures) -> bool:
    name = metric or next(iter(new))
    return better(name, new[name], old[name])


def _note(best: RepeatedRun, folder: Path, metric: str | None) -> dict[str, Any]:
    """Where the model of a folder comes from."""
    return {
        "from": best.folder.relative_to(folder).as_posix(),
        "because": f"the best {metric or next(iter(best.figures))} on the development rows",
        "figures": best.figures,
    }


def _numbers(figures: Mapping[str, float | None]) -> Figures:
    return {name: math.nan if value is None else value for name, value in figures.items()}
