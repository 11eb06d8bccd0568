"""Several runs of fine-tuning (seeds or folds): each is finished once, the best is chosen."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.files.strict_json import json_values, write_json
from bertsmith.labeled.split.stratify import fold_numbers
from bertsmith.metrics import better
from bertsmith.metrics.significance import over_seeds
from bertsmith.runtime.ensemble import FIGURES
from bertsmith.runtime.predict_files import write_labeled
from bertsmith.runtime.predictor import load_predictor
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.model.columns import meta_tables
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import score
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.finetune.encoder_cache import EncoderCache
from bertsmith.training.finetune.finetune import FinetuneJob, FinetuneResult, finetune
from bertsmith.training.finetune.model import save_task_model
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.studies.trials import (
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
class RepeatedRun:
    """A finished run: its seed or the number of its fold, its folder, its development figures."""

    number: int
    folder: Path
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRuns:
    """Several runs of one job; `outcome` is that of the best of them by its development figure.

    The folder of the job then holds the model of `best`. If a signal stopped a run, `outcome` is
    that of this run, and there is no best one yet.
    """

    kind: Literal["seeds", "folds"]
    members: tuple[RepeatedRun, ...]
    outcome: Outcome
    best: RepeatedRun | None = None
    whole: Figures | None = None  # folds: of all rows, each predicted by the run that never saw it

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


def _run_all(
    kind: Literal["seeds", "folds"],
    job: FinetuneJob,
    jobs: Mapping[int, FinetuneJob],
    *,
    execution: Execution,
    watch: Watcher | None,
    notice: Notice,
) -> RepeatedRuns:
    """Every job that is not finished; then the model of the best one goes into the folder above."""
    cache: EncoderCache | None = {} if kind == "seeds" else None  # folds have rows of their own
    trained: dict[int, FinetuneResult] = {}  # the best only, to hold no more models in memory

    def trial(number: int, one: FinetuneJob) -> Trial:
        name = f"{kind.removesuffix('s')} {number}"

        def run(watch: Watcher | None) -> TrialResult | Outcome:
            done = finetune(one, execution=execution, watch=watch, cache=cache)
            if done.dev_figures is None:
                return done.outcome
            if all(_better(job, done.dev_figures, r.dev_figures or {}) for r in trained.values()):
                trained.clear()
                trained[number] = done
            seconds = done.outcome.seconds
            return TrialResult(name=name, figures=done.dev_figures, seconds=seconds)

        return Trial(name=name, key=job_key(one, execution), run=run, record=one.folder / FIGURES)

    trials = {number: trial(number, one) for number, one in jobs.items()}
    done = run_trials(
        list(trials.values()),
        job.folder,
        ranks=execution.ranks,
        watch=None if watch is None else lambda look: watch(look.run),
        notice=notice,
    )
    by_name = {result.name: result.figures for result in done.rows}
    members = tuple(
        RepeatedRun(number=number, folder=one.folder, figures=_numbers(by_name[name]))
        for number, one in jobs.items()
        if (name := trials[number].name) in by_name
    )
    if done.stopped is not None:
        return RepeatedRuns(kind=kind, members=members, outcome=done.stopped)
    best = members[0]
    for member in members[1:]:
        if _better(job, member.figures, best.figures):
            best = member
    chosen = jobs[best.number]
    result = trained.get(best.number) or finetune(chosen, execution=execution, watch=watch)
    on_first(execution.ranks, lambda: _put(job, chosen, best, result))
    notice(f"{job.folder} holds the model of {trials[best.number].name}")
    return RepeatedRuns(kind=kind, members=members, outcome=result.outcome, best=best)


def _metric(job: FinetuneJob, figures: Figures) -> str:
    """The metric that decides which run is best."""
    return job.recipe.best.figure or next(iter(figures))


def _better(job: FinetuneJob, new: Figures, old: Figures) -> bool:
    name = _metric(job, new)
    return better(name, new[name], old[name])


def _numbers(figures: Mapping[str, float | None]) -> Figures:
    return {name: math.nan if value is None else value for name, value in figures.items()}


def _put(
    job: FinetuneJob, chosen: FinetuneJob, member: RepeatedRun, result: FinetuneResult
) -> None:
    """The best model into the folder above the runs, with a note where it comes from."""
    if result.model is None or result.tokenizer is None:
        raise ConfigError(f"{chosen.folder} was stopped before its end; run the same command again")
    tables = meta_tables(chosen.train, chosen.recipe.head.meta)
    save_task_model(
        result.model,
        result.tokenizer,
        job.folder,
        recipe=chosen.recipe,
        tables=tables,
        rows=chosen.train,
        spec=chosen.spec,
    )
    note = {
        "from": member.folder.relative_to(job.folder).as_posix(),
        "because": f"the best {_metric(job, member.figures)} on the development rows",
        "figures": member.figures,
    }
    write_json(job.folder / CHOSEN, note)


PREDICTIONS = "predictions.folds.jsonl"


def finetune_seeds(
    job: FinetuneJob,
    seeds: Sequence[int],
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns:
    """Fine-tune with each seed, in OUT/seeds/SEED; finished runs are not repeated.

    OUT gets the model of the seed with the best development figure. `notice` receives the progress.
    """
    execution = execution or Execution()
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
    with held(job.folder, execution.ranks):
        return _run_all("seeds", job, jobs, execution=execution, watch=watch, notice=notice)


def finetune_folds(
    job: FinetuneJob,
    folds: int,
    *,
    group: str | None = None,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns:
    """Fine-tune once for each fold of the training rows, in OUT/folds/N; finished ones stay.

    In each run one fold is held out, and the development rows choose the best weights, so that
    nothing of the held-out rows reaches its model. Their predictions go, in the order of the
    training rows, into predictions.folds.jsonl; `whole` are the figures of all of them together.
    OUT gets the model of the fold with the best development figure.
    """
    execution = execution or Execution()
    whose = fold_numbers(job.train, folds, seed=job.recipe.run.seed, group=group)
    # Labels may be so rare that a fold holds all of their rows; a scale is not learned from those.
    known = task_kind(job.task).known(job.train)
    jobs = {
        number: replace(
            job,
            train=[row for row, fold in zip(job.train, whose, strict=True) if fold != number],
            known=known,
            out=job.folder / "folds" / str(number),
        )
        for number in range(folds)
    }
    with held(job.folder, execution.ranks):
        many = _run_all("folds", job, jobs, execution=execution, watch=watch, notice=notice)
        if many.best is None:
            return many
        return _with_rows(many, job, whose, execution)


def _with_rows(
    many: RepeatedRuns, job: FinetuneJob, whose: Sequence[int], execution: Execution
) -> RepeatedRuns:
    """The figures of the held-out rows: of each fold, and of all together."""
    held_out: dict[int, Prediction] = {}
    members = []
    for member in many.members:
        predictor = load_predictor(member.folder, device=str(execution.device))
        numbers = [n for n, fold in enumerate(whose) if fold == member.number]
        rows = [job.train[n] for n in numbers]
        predicted = [one for _, one in predictor.stream(rows)]
        members.append(
            RepeatedRun(
                number=member.number,
                folder=member.folder,
                figures=score(predictor.task, rows, predicted),
            )
        )
        held_out |= dict(zip(numbers, predicted, strict=True))
    every = [held_out[n] for n in range(len(job.train))]
    task = predictor.task
    path = job.folder / PREDICTIONS
    on_first(execution.ranks, lambda: write_labeled(path, job.train, every, whose))
    best = next(one for one in members if many.best and one.number == many.best.number)
    whole = score(task, job.train, every)
    return replace(many, members=tuple(members), best=best, whole=whole)
