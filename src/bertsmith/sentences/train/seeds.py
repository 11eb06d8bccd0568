"""Sentence training with several seeds: each run is finished once, the best one is saved."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertsmith.config import changed
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
from bertsmith.training.learner import Trained
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.repeat.repeat import RepeatedRuns, Repetition, run_repeated
from bertsmith.training.repeat.trials import Notice, held, recipe_facts

log = logging.getLogger(__name__)


def train_seeds(
    job: SentenceJob,
    seeds: Sequence[int],
    *,
    execution: Execution | None = None,
    watch: Watcher | None = None,
    notice: Notice = log.info,
) -> tuple[RepeatedRuns[_Saved], tuple[str, ...]]:
    """Train with each seed, in OUT/seeds/SEED; OUT gets the model of the best dev figure.

    Also gives the notes on the rows, which are the same for all runs, in the first process.
    """
    execution = execution or Execution()
    if job.dev is None:
        raise ConfigError("several seeds are compared by dev rows, and there are none; give --dev")
    jobs = {
        seed: replace(
            job,
            recipe=changed(job.recipe, {"run.seed": seed}),
            out=job.folder / "seeds" / str(seed),
        )
        for seed in seeds
    }

    def repetition(one: SentenceJob) -> Repetition[_Saved]:
        decides = {**facts(one, execution), **recipe_facts(one.recipe, one.recipe.run.seed)}
        return Repetition(
            folder=one.folder,
            key=json_digest(decides),
            run=lambda watch: _trained(train_sentences(one, execution=execution, watch=watch)),
        )

    with held(job.folder, execution.ranks):
        many = run_repeated(
            "seeds",
            job.folder,
            {seed: repetition(one) for seed, one in jobs.items()},
            metric=job.recipe.best.figure,
            execution=execution,
            watch=watch,
            notice=notice,
        )
    finished = many.trained.finished
    return many, () if finished is None else finished.notes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    """A finished result as several runs compare and save it."""

    result: SentenceResult

    @property
    def figures(self) -> dict[str, float] | None:
        return self.result.dev_figures

    @property
    def notes(self) -> tuple[str, ...]:
        return self.result.notes

    def save(self, out: Path) -> None:
        save_sentences(self.result, out)


def _trained(result: SentenceResult) -> Trained[_Saved]:
    finished = None if result.model is None else _Saved(result=result)
    return Trained(outcome=result.outcome, finished=finished)
