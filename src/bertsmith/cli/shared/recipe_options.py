"""The recipe of a fine-tuning and its most used settings as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertsmith.cli.shared.options import (
    BatchSize,
    Epochs,
    LearningRate,
    MaxLength,
    RecipeOption,
    Seed,
    Set,
    Threads,
    TrainingDevice,
    TrainingPrecision,
    overrides,
)
from bertsmith.config import Override

if TYPE_CHECKING:
    from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeOptions:
    """A recipe, short names for its settings, and what it is computed on."""

    recipe: RecipeOption = None
    epochs: Epochs = None
    lr: LearningRate = None
    batch: BatchSize = None
    max_length: MaxLength = None
    seed: Seed = None
    set: Set = None
    device: TrainingDevice = None
    precision: TrainingPrecision = None
    threads: Threads = None

    def overrides(self) -> list[Override]:
        """The settings that were given, as overrides of the recipe."""
        short = {
            "length.max_length": self.max_length,
            "plan.epochs": self.epochs,
            "optimizer.lr": self.lr,
            "plan.batch": self.batch,
            "run.seed": self.seed,
            "run.precision": self.precision,
            "run.threads": self.threads,
        }
        return overrides(self.set, short)

    def read(self, default: str) -> FinetuneRecipe:
        """The recipe, or another by default, with these settings."""
        from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe

        return load_finetune_recipe(self.recipe or default, self.overrides())
