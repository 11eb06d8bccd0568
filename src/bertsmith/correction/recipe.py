"""A whole training of a corrector as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bertsmith.config import Settings, validated
from bertsmith.labeled.errors.misspell import ErrorSettings
from bertsmith.sentences.train.recipe import DropoutSettings, SentencePlan
from bertsmith.tasks.spelling.settings import DetectorSettings, ThresholdSettings
from bertsmith.training.checkpoints.checkpoint import SaveSettings
from bertsmith.training.execution.execution import RunSettings
from bertsmith.training.finetune.recipe import FinetuneOptimizer
from bertsmith.training.loop.averaging import AveragingSettings
from bertsmith.training.loop.best import BestSettings
from bertsmith.training.recipe_files import RecipeShelf

Count = Annotated[int, Field(gt=0)]

CORRECT_RECIPES = RecipeShelf(
    "correct",
    either_or=(
        ("plan", "epochs", "steps"),
        ("plan", "epochs", "budget"),
        ("plan", "steps", "budget"),
    ),
)
CORRECT = "correct"  # the task, and its default recipe


class AboutCorrection(Settings):
    """What a recipe is, for people."""

    summary: str = ""
    source: str = ""


class CorrectionLength(Settings):
    """Tokens that pass through the model at once; longer texts are read in windows."""

    max_length: Annotated[int, Field(ge=8)] = 256


class CorrectRecipe(Settings):
    """Everything that decides what is learned, and how."""

    about: AboutCorrection = AboutCorrection()
    detector: DetectorSettings = DetectorSettings()
    threshold: ThresholdSettings = ThresholdSettings()
    errors: ErrorSettings = ErrorSettings()
    length: CorrectionLength = CorrectionLength()
    encoder: DropoutSettings = DropoutSettings()
    optimizer: FinetuneOptimizer = FinetuneOptimizer()
    plan: SentencePlan = SentencePlan(epochs=4.0, batch=32)
    averaging: AveragingSettings = AveragingSettings(tail=0.0)
    best: BestSettings = BestSettings()
    save: SaveSettings = SaveSettings(every=10_000, seconds=120.0)
    run: RunSettings = RunSettings()


def load_correct_recipe(named: str | Path | None, overrides: Sequence[str] = ()) -> CorrectRecipe:
    """A recipe with settings given as "section.key=value" laid over it."""
    tree, source = CORRECT_RECIPES.tree(named or CORRECT, overrides)
    return validated(CorrectRecipe, tree, source)
