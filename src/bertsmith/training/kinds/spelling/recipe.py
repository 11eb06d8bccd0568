"""A whole training of a corrector as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from bertsmith.config import Overrides, Settings, validated
from bertsmith.labeled.errors.misspell import ErrorSettings
from bertsmith.tasks.spelling.settings import DetectorSettings, ThresholdSettings
from bertsmith.training.recipe import ONE_LENGTH, DropoutSettings, RowPlan, TrainingRecipe
from bertsmith.training.recipe_files import RecipeShelf

CORRECT_RECIPES = RecipeShelf(
    "correct",
    either_or=ONE_LENGTH,
)
CORRECT = "correct"  # the task, and its default recipe


class CorrectionLength(Settings):
    """Tokens that pass through the model at once; longer texts are read in windows."""

    max_length: Annotated[int, Field(ge=8)] = 256


class CorrectRecipe(TrainingRecipe):
    """Everything that decides what is learned, and how."""

    detector: DetectorSettings = DetectorSettings()
    threshold: ThresholdSettings = ThresholdSettings()
    errors: ErrorSettings = ErrorSettings()
    length: CorrectionLength = CorrectionLength()
    encoder: DropoutSettings = DropoutSettings()
    plan: RowPlan = RowPlan(epochs=4.0, batch=32)


def load_correct_recipe(named: str | Path | None, overrides: Overrides = ()) -> CorrectRecipe:
    """A recipe with settings given as "section.key=value" laid over it."""
    tree, source = CORRECT_RECIPES.tree(named or CORRECT, overrides)
    return validated(CorrectRecipe, tree, source)
