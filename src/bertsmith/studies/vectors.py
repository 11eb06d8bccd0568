"""Every way to make a vector of a text on one data set: encoder frozen, and trained with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from bertsmith.config import changed
from bertsmith.tasks.model.text_vector import VectorSettings, choice_name
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.recipe import (
    FinetuneRecipe,
    RegularizationSettings,
    TextVectorSettings,
)
from bertsmith.training.kinds.labeled.trials import finetune_trial
from bertsmith.training.repeat.trials import Trial

Encoder = Literal["frozen", "trained"]
FORWARD_ONLY = 1 / 3  # of the time of a step that also goes backward


def run_name(encoder: Encoder, choice: VectorSettings) -> str:
    """The name of a run: "frozen.mean-last"."""
    return f"{encoder}.{choice_name(choice)}"


def vector_trials(
    job: FinetuneJob, choices: Sequence[VectorSettings], execution: Execution, *, mark: str = ""
) -> list[Trial]:
    """A run of fine-tuning for each choice, in a folder of its own below the job's.

    A frozen encoder reads each text once, unless the vector itself is learned.
    """
    encoder: Encoder = "frozen" if job.recipe.encoder.frozen else "trained"
    cost = FORWARD_ONLY if encoder == "frozen" else job.recipe.plan.epochs
    trials = []
    for choice in choices:
        name = run_name(encoder, choice)
        own = replace(with_vector(job, choice), out=job.folder / name)
        trials.append(finetune_trial(name, own, execution, mark=mark, cost=cost))
    return trials


def with_vector(job: FinetuneJob, choice: VectorSettings) -> FinetuneJob:
    """The job with another way to make a vector."""
    vector = TextVectorSettings(pooling=choice.pooling, layers=choice.layers)
    return replace(job, recipe=changed(job.recipe, {"vector": vector}))


def frozen_recipe(
    recipe: FinetuneRecipe, *, epochs: float, rate: float | None = None
) -> FinetuneRecipe:
    """A recipe for heads alone, which want more epochs and a learning rate of their own.

    None: by the size of the vectors that a head reads. What only an encoder that learns can use
    (its dropout, R-Drop, token dropout) is left out.
    """
    return changed(
        recipe,
        {
            "plan.epochs": epochs,
            "optimizer.lr": rate,
            "encoder.frozen": True,
            "encoder.dropout": None,
            "encoder.attention_dropout": None,
            "regularization": RegularizationSettings(),
        },
    )
