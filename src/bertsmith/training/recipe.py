"""What the recipes of training share: plan, dropout, optimizer, and the settings of the loop."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from bertsmith.config import Count, Positive, Settings, Share
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.loop.schedule import LinearSettings, Seconds
from bertsmith.training.optimizers.optimizers import AdamWSettings, AdamWShape

# Pairs of settings of which only one can be given, for `RecipeShelf`: the three lengths of a plan.
ONE_LENGTH = (
    ("plan", "epochs", "steps"),
    ("plan", "epochs", "budget"),
    ("plan", "steps", "budget"),
)


class About(Settings):
    """What a recipe is, for people."""

    summary: str = ""
    source: str = ""


class DropoutSettings(Settings):
    """Dropout of the encoder in training."""

    dropout: Share | None = None  # None: the model's own; 0.1 if it has none
    attention_dropout: Share | None = None  # None: 0 on CPUs, where it is slow; else the model's


class RatedOptimizer(AdamWShape):
    """AdamW, whose rate may be left to the model."""

    lr: Positive | None = None  # None: what suits the model, see `training.default_rate`

    def at(self, rate: float) -> AdamWSettings:
        """The same with this rate."""
        return AdamWSettings.model_validate({**self.model_dump(), "lr": rate})


class PlanLength(Settings):
    """How long training lasts; exactly one of epochs, steps and budget."""

    epochs: Annotated[float, Field(gt=0)] | None = None
    steps: Count | None = None
    budget: Seconds | None = None
    warmup: Share = 0.1
    evaluations: Count = 10  # of the dev rows during training
    evaluate_every: Count = 50  # steps between them where a time limits training

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if sum(value is not None for value in (self.epochs, self.steps, self.budget)) != 1:
            raise ValueError("give exactly one of epochs, steps and budget")
        return self

    def schedule(self, epoch: float) -> LinearSettings:
        """Up and down in straight lines over the time, or over the steps: `epoch` are one epoch."""
        if self.budget is not None:
            return LinearSettings(budget=self.budget, warmup=self.warmup)
        steps = self.steps or max(1, round(epoch * (self.epochs or 1.0)))
        return LinearSettings(steps=steps, warmup=self.warmup)

    def every(self, steps: int | None) -> int:
        """Steps between two evaluations."""
        return self.evaluate_every if steps is None else max(1, steps // self.evaluations)


class RowPlan(PlanLength):
    """How long, and in what portions rows are read."""

    batch: Count = 64  # rows per step
    micro_tokens: Count = 2_048  # tokens of a pass


class TrainingRecipe(Settings):
    """What every training from rows has, whatever it learns; kinds add sections of their own."""

    about: About = About()
    optimizer: RatedOptimizer = RatedOptimizer()
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    best: BestSettings = BestSettings()
    save: SaveSettings = SaveSettings(every=10_000, seconds=120.0)
    run: RunSettings = RunSettings()
