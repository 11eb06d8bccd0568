"""Several runs of fine-tuning: seeds, or folds of the training rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bertsmith.errors import ConfigError
from bertsmith.labeled.split.stratify import fold_numbers
from bertsmith.runtime.answer_files import write_labeled
from bertsmith.runtime.load_predictor import load_predictor
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
from bertsmith.training.repeat.repeat import (
    RepeatedRun,
    RepeatedRuns,
    Repetition,
    run_repeated,
    seeded,
)
from bertsmith.training.repeat.trials import Notice, held, job_key

log = logging.getLogger(__name__)

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
    jobs = seeded(job, seeds)
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

    def repetition(one: FinetuneJob) -> Repetition[FinetuneResult]:
        return Repetition(
            folder=one.folder,
            key=job_key(one, execution),
            run=lambda watch: finetune(one, execution=execution, watch=watch, cache=cache),
        )

    def put(number: int, result: FinetuneResult) -> None:
        chosen = jobs[number]
        if result.model is None or result.tokenizer is None:
            raise ConfigError(f"{chosen.folder} has no model")
        save_task_model(
            result.model,
            result.tokenizer,
            job.folder,
            recipe=chosen.recipe,
            tables=meta_tables(chosen.train, chosen.recipe.head.meta),
            rows=chosen.train,
            spec=chosen.spec,
            enrichment=result.enrichment,
        )

    return run_repeated(
        kind,
        job.folder,
        {number: repetition(one) for number, one in jobs.items()},
        put=put,
        metric=job.recipe.best.figure,
        execution=execution,
        watch=watch,
        notice=notice,
    )


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
