"""Sentence training with several seeds: each run is finished once, the best one is saved."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from bertsmith.errors import ConfigError
from bertsmith.files.digest import json_digest
from bertsmith.sentences.train.train import (
    SentenceJob,
    SentenceResult,
    facts,
    save_sentences,
    train_sentences,
)
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.repeat.repeat import RepeatedRuns, Repetition, run_repeated, seeded
from bertsmith.training.repeat.trials import Notice, held, recipe_facts

log = logging.getLogger(__name__)


def train_seeds(
    job: SentenceJob,
    seeds: Sequence[int],
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> tuple[RepeatedRuns, tuple[str, ...]]:
    """Train with each seed, in OUT/seeds/SEED; OUT gets the model of the best dev figure.

    Also gives the notes on the rows, which are the same for all runs, in the first process.
    """
    execution = execution or Execution()
    if job.dev is None:
        raise ConfigError("several seeds are compared by dev rows, and there are none; give --dev")
    jobs = seeded(job, seeds)

    def repetition(one: SentenceJob) -> Repetition[SentenceResult]:
        decides = {**facts(one, execution), **recipe_facts(one.recipe, one.recipe.run.seed)}
        return Repetition(
            folder=one.folder,
            key=json_digest(decides),
            run=lambda watch: train_sentences(one, execution=execution, watch=watch),
        )

    notes: list[str] = []

    def put(_: int, result: SentenceResult) -> None:
        save_sentences(result, job.folder)
        notes.extend(result.notes)

    with held(job.folder, execution.ranks):
        many = run_repeated(
            "seeds",
            job.folder,
            {seed: repetition(one) for seed, one in jobs.items()},
            put=put,
            metric=job.recipe.best.figure,
            execution=execution,
            watch=watch,
            notice=notice,
        )
    return many, tuple(notes)
