"""Every way to make a vector of a text on one data set: encoder frozen, and trained with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.folders.read import read_folder
from bertsmith.metrics import LOWER_IS_BETTER
from bertsmith.studies.study import (
    Findings,
    Study,
    StudyPlan,
    StudyTable,
    figure_text,
    shown_figures,
)
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.model.text_vector import VectorSettings, choice_name, vector_choices
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.recipe import (
    FinetuneRecipe,
    RegularizationSettings,
    TextVectorSettings,
)
from bertsmith.training.kinds.labeled.trials import finetune_trial
from bertsmith.training.repeat.trials import Trial, TrialResult, Trials
from bertsmith.wording import counted, duration

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorChoices:
    """Which text vectors are compared; nothing given: all of them, frozen and trained."""

    only: Encoder | None = None
    pooling: Sequence[str] = ()
    layers: Sequence[str] = ()
    frozen_epochs: float = 10.0
    frozen_lr: float | None = None  # None: by the norm of the vectors


@dataclass(frozen=True, kw_only=True)
class VectorStudy(Study[Findings]):
    """A run for each pooling of each choice of layers, with a frozen and with a trained encoder.

    `mark` identifies the initial weights, since others may have the same name.
    """

    data: Path
    folder: Path
    job: FinetuneJob
    choices: VectorChoices
    mark: str = ""
    name: str = "vectors"

    def plan(self, execution: Execution) -> StudyPlan:
        """The runs with a frozen encoder, then those that train it, too."""
        job, wanted = self.job, self.choices
        if task_kind(job.task).reads == "rows":
            raise ConfigError(f"{job.task} reads single tokens: there is no text vector to choose")
        blocks = read_folder(job.model).spec.layers
        choices = list(vector_choices(blocks, wanted.pooling, wanted.layers).values())
        trials: list[Trial] = []
        if wanted.only != "trained":
            recipe = frozen_recipe(job.recipe, epochs=wanted.frozen_epochs, rate=wanted.frozen_lr)
            trials += vector_trials(replace(job, recipe=recipe), choices, execution, mark=self.mark)
        if wanted.only != "frozen":
            # The model's own head is a choice, too, where it has one: what other libraries load.
            plain = not wanted.pooling and not wanted.layers and job.recipe.head.is_plain
            own = [VectorSettings(pooling="published")] if plain else []
            trials += vector_trials(job, [*own, *choices], execution, mark=self.mark)
        return StudyPlan(trials=trials)

    def result(self, done: Trials) -> Findings:
        """A row per vector and encoder, the best development figure first."""
        task, rows = self.job.task, self.job.rows
        figure = self.job.recipe.best.figure or task_kind(task).metric.main
        runs = _ranked(done.rows, figure)
        names = shown_figures(task, runs[0].figures, figure)
        records, cells = [], []
        for one in runs:
            encoder, _, choice = one.name.partition(".")
            pooling, _, layers = choice.partition("-")
            what = {"encoder": encoder, "pooling": pooling, "layers": layers}
            records.append({**what, **one.to_json()})
            figures = (figure_text(one.figures.get(name)) for name in names)
            cells.append([f"{pooling} of {layers}", encoder, *figures, duration(one.seconds)])
        train, dev = len(rows.train), len(rows.dev)
        return Findings(
            record={
                "data": str(self.data),
                "model": self.job.model,
                "task": task,
                "figure": figure,
                "rows": {"train": train, "dev": dev},
                "runs": records,
            },
            head=[
                f"{counted(train, 'training row')}; metrics of {counted(dev, 'dev row')}, "
                "best first:"
            ],
            tables=[StudyTable(heads=["vector", "encoder", *names, "time"], rows=cells)],
        )


def _ranked(runs: Sequence[TrialResult], figure: str) -> list[TrialResult]:
    """The best first; those without the figure last."""
    sign = 1 if figure in LOWER_IS_BETTER else -1

    def place_of(one: TrialResult) -> tuple[bool, float]:
        value = one.figures.get(figure)
        missing = value is None or math.isnan(value)
        return missing, 0.0 if value is None or missing else sign * value

    return sorted(runs, key=place_of)
