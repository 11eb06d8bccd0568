"""A whole run of sentence training as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bertsmith.config import Count, Overrides, Positive, Settings, validated
from bertsmith.models.sentence_spec import PoolingKind
from bertsmith.sentences.train.objectives import ObjectiveSettings
from bertsmith.training.recipe import ONE_LENGTH, DropoutSettings, RowPlan, TrainingRecipe
from bertsmith.training.recipe_files import RecipeShelf

SENTENCE_RECIPES = RecipeShelf(
    "sentences",
    either_or=ONE_LENGTH,
)
DEFAULT = "sentences"


class SentenceVector(Settings):
    """How rows become one vector: as the model's folder says, or as is set here."""

    pooling: PoolingKind | Literal["auto"] = "auto"  # auto: the folder's own, else the mean
    normalize: bool | None = None  # None: as the folder says
    max_length: Count = 128  # tokens of a text in training; the saved model keeps its own limit


class MatryoshkaSettings(Settings):
    """Dimensions that vectors may be cut to later; none: only the whole vector is trained."""

    dims: Annotated[tuple[Count, ...], Field(strict=False)] = ()
    weights: Annotated[tuple[Positive, ...], Field(strict=False)] | None = None


class SentenceRows(Settings):
    """What rows mean, where the file does not say it."""

    positive: str | None = None  # the label of pairs that mean the same
    range: Annotated[tuple[float, float], Field(strict=False)] | None = None  # of scores
    dev: Annotated[float, Field(gt=0, lt=1)] = 0.1  # share of the rows, where there is no dev file


class SentenceRecipe(TrainingRecipe):
    """Everything that decides what is learned, and how."""

    objective: ObjectiveSettings | None = None  # None: by the kind of data
    matryoshka: MatryoshkaSettings = MatryoshkaSettings()
    vector: SentenceVector = SentenceVector()
    encoder: DropoutSettings = DropoutSettings()
    data: SentenceRows = SentenceRows()
    plan: RowPlan = RowPlan(epochs=1.0)


def load_sentence_recipe(named: str | Path | None, overrides: Overrides = ()) -> SentenceRecipe:
    """A recipe with settings given as "section.key=value" laid over it."""
    tree, source = SENTENCE_RECIPES.tree(named or DEFAULT, overrides)
    return validated(SentenceRecipe, tree, source)
