"""Recipes of fine-tuning by name or path; without one, what suits the task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertsmith.config import validated
from bertsmith.training.finetune.recipe import FinetuneRecipe
from bertsmith.training.recipe_files import Shelf

SHELF = Shelf("finetune")
DEFAULT = "default"


def load_finetune_recipe(
    named: str | Path | None, overrides: Sequence[str] = (), *, task: str | None = None
) -> FinetuneRecipe:
    """A recipe with settings given as "section.key=value" laid over it.

    None: the default of `task`, which for tags, answers and choices has lengths of its own.
    """
    tree, source = SHELF.tree(default_recipe(task) if named is None else named, overrides)
    return validated(FinetuneRecipe, tree, source)


def default_recipe(task: str | None) -> str:
    """The name of the recipe for a task that no recipe was named for."""
    own = f"{DEFAULT}-{task}"
    return own if own in SHELF.shipped() else DEFAULT


def find_finetune_recipe(named: str) -> Path:
    """The file of a recipe, by name or by path."""
    return SHELF.find(named)


def shipped_finetune() -> dict[str, Path]:
    """The recipes that come with the package, by name."""
    return SHELF.shipped()
