"""A whole training of a model that writes as one frozen tree of settings, read from TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from bertsmith.config import Count, Overrides, Positive, Settings, Share, validated
from bertsmith.training.recipe import ONE_LENGTH, DropoutSettings, RowPlan, TrainingRecipe
from bertsmith.training.recipe_files import RecipeShelf

WRITE_RECIPES = RecipeShelf(
    "write",
    either_or=ONE_LENGTH,
)


class WritingSettings(Settings):
    """How targets are predicted; `by` and `hidden` are for bidirectional models."""

    by: Literal["auto", "mask", "shift"] = "auto"  # auto: as the folder writes, else by mask
    hidden: Annotated[float, Field(gt=0, le=1)] = 0.7  # by mask: share of the target tokens
    smoothing: Share = 0.1  # of the labels, in training


class SimilaritySettings(Settings):
    """The second loss of similar sentences."""

    scale: Positive = 30.0  # what cosines are multiplied with
    weight: Annotated[float, Field(ge=0)] = 1.0  # 0: the model learns to write alone


class PairLength(Settings):
    """Tokens of source and target together; of each, where a decoder writes the target."""

    max_length: Annotated[int, Field(ge=12)] = 256


class PairRows(Settings):
    """What labels mean."""

    positive: str | None = None  # the label of pairs that say the same


class DevWriting(Settings):
    """How many rows are written: in training, where a figure of text decides, and at the end."""

    rows: Count = 200
    reported: Count = 1_000  # of dev and of test rows


class WriteRecipe(TrainingRecipe):
    """Everything that decides what is learned, and how."""

    writing: WritingSettings = WritingSettings()
    similarity: SimilaritySettings | None = None  # None: targets are written, nothing else
    length: PairLength = PairLength()
    data: PairRows = PairRows()
    encoder: DropoutSettings = DropoutSettings()
    plan: RowPlan = RowPlan(epochs=10.0, batch=32)
    dev: DevWriting = DevWriting()


def load_write_recipe(named: str | Path, overrides: Overrides = ()) -> WriteRecipe:
    """A recipe with settings given as "section.key=value" laid over it."""
    tree, source = WRITE_RECIPES.tree(named, overrides)
    return validated(WriteRecipe, tree, source)
