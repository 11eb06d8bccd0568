"""Cross-validation: a run for each fold of the training rows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from bertsmith.labeled.split.stratify import fold_numbers
from bertsmith.runtime.answer_files import write_labeled
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import score
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import on_first
from bertsmith.training.kinds.labeled.learner import (
    FinetunedTask,
    FinetuneJob,
    labeled_learner,
)
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.repeat.repeat import (
    RepeatedRun,
    RepeatedRuns,
    repetition,
    run_repeated,
)
from bertsmith.training.repeat.trials import Notice, held

log = logging.getLogger(__name__)

PREDICTIONS = "predictions.folds.jsonl"


def finetune_folds(
    job: FinetuneJob,
    folds: int,
    *,
    group: str | None = None,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> RepeatedRuns[FinetunedTask]:
    """Fine-tune once for each fold of the training rows, in OUT/folds/N; finished ones stay.

    In each run one fold is held out, and the development rows choose the best weights, so that
    nothing of the held-out rows reaches its model. Their predictions go, in the order of the
    training rows, into predictions.folds.jsonl; `whole` are the figures of all of them together.
    OUT gets the model of the fold with the best development figure.
    """
    execution = execution or Execution()
    whose = fold_numbers(job.rows.train, folds, seed=job.recipe.run.seed, group=group)
    # Labels may be so rare that a fold holds all of their rows; a scale is not learned from those.
    known = task_kind(job.task).known(job.rows.train)
    jobs = {
        number: replace(
            job,
            rows=replace(
                job.rows,
                train=[
                    row for row, fold in zip(job.rows.train, whose, strict=True) if fold != number
                ],
                known=known,
            ),
            out=job.folder / "folds" / str(number),
        )
        for number in range(folds)
    }
    learner = labeled_learner()
    with held(job.folder, execution.ranks):
        many = run_repeated(
            "folds",
            job.folder,
            {number: repetition(learner, one, execution) for number, one in jobs.items()},
            metric=job.recipe.best.figure,
            execution=execution,
            watch=watch,
            notice=notice,
        )
        if many.best is None:
            return many
        return _with_rows(many, job, whose, execution)


def _with_rows(
    many: RepeatedRuns[FinetunedTask], job: FinetuneJob, whose: Sequence[int], execution: Execution
) -> RepeatedRuns[FinetunedTask]:
    """The figures of the held-out rows: of each fold, and of all together."""
    held_out: dict[int, Prediction] = {}
    members = []
    for member in many.members:
        predictor = load_predictor(member.folder, device=str(execution.device))
        numbers = [n for n, fold in enumerate(whose) if fold == member.number]
        rows = [job.rows.train[n] for n in numbers]
        predicted = [one for _, one in predictor.stream(rows)]
        members.append(
            RepeatedRun(
                number=member.number,
                folder=member.folder,
                figures=score(predictor.task, rows, predicted),
            )
        )
        held_out |= dict(zip(numbers, predicted, strict=True))
    every = [held_out[n] for n in range(len(job.rows.train))]
    task = predictor.task
    path = job.folder / PREDICTIONS
    on_first(execution.ranks, lambda: write_labeled(path, job.rows.train, every, whose))
    best = next(one for one in members if many.best and one.number == many.best.number)
    whole = score(task, job.rows.train, every)
    return replace(many, members=tuple(members), best=best, whole=whole)
