"""Every way to make a vector of a text on one data set: encoder frozen, and trained with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from bertsmith.tasks.model.text_vector import VectorSettings
from bertsmith.tasks.model.vector_choices import choice_name
from bertsmith.training.execution.execution import Place
from bertsmith.training.finetune.finetune import FinetuneJob
from bertsmith.training.finetune.recipe import FinetuneRecipe, TextVectorSettings
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.studies.frozen_heads import frozen_heads
from bertsmith.training.studies.store import Tried
from bertsmith.training.studies.trials import Trial, finetune_trial, job_key

Encoder = Literal["frozen", "trained"]
FORWARD_ONLY = 1 / 3  # of the time of a step that also goes backward


def run_name(encoder: Encoder, choice: VectorSettings) -> str:
    """The name of a run: "frozen.mean-last"."""
    return f"{encoder}.{choice_name(choice)}"


def frozen_trial(
    job: FinetuneJob,
    choices: Sequence[VectorSettings],
    place: Place,
    *,
    rate: float | None = None,
    mark: str = "",
) -> Trial:
    """All choices on the encoder as it is: one pass through it serves them all.

    `rate` is the learning rate of the heads; None: as the size of their vectors asks for.
    """
    by_name = {run_name("frozen", choice): choice for choice in choices}

    def run(names: Sequence[str], watch: Watcher | None) -> Mapping[str, Tried]:
        chosen = {name: by_name[name] for name in names}
        return frozen_heads(job, chosen, place, rate=rate, watch=watch)

    keys = {
        name: job_key(with_vector(job, choice), place, mark=f"frozen {rate} {mark}")
        for name, choice in by_name.items()
    }
    return Trial(keys=keys, run=run, cost=job.recipe.plan.epochs * FORWARD_ONLY)


def trained_trials(
    job: FinetuneJob, choices: Sequence[VectorSettings], place: Place, *, mark: str = ""
) -> list[Trial]:
    """A run of fine-tuning for each choice, in a folder of its own below the job's."""
    found = []
    for choice in choices:
        name = run_name("trained", choice)
        own = replace(with_vector(job, choice), out=job.out / name)
        cost = job.recipe.plan.epochs
        found.append(finetune_trial(name, own, place, mark=mark, cost=cost))
    return found


def with_vector(job: FinetuneJob, choice: VectorSettings) -> FinetuneJob:
    """The job with another way to make a vector."""
    vector = TextVectorSettings(pooling=choice.pooling, layers=choice.layers)
    return replace(job, recipe=job.recipe.model_copy(update={"vector": vector}))


def frozen_recipe(recipe: FinetuneRecipe, *, epochs: float) -> FinetuneRecipe:
    """A recipe for heads alone, which want more epochs."""
    return recipe.model_copy(
        update={
            "plan": recipe.plan.model_copy(update={"epochs": epochs}),
            "encoder": recipe.encoder.model_copy(update={"frozen": True}),
        }
    )
