"""`bertsmith recipes`: the shipped recipes, and the text of each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.errors import ConfigError, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bertsmith.config import Settings

Action = Annotated[
    Literal["show"] | None, typer.Argument(metavar="[show RECIPE]", help="Print a recipe.")
]
Name = Annotated[str | None, typer.Argument(hidden=True)]
Whole = Annotated[
    bool, typer.Option("--whole", help="Include all defaults and everything it extends.")
]


def recipes(action: Action = None, name: Name = None, whole: Whole = False) -> None:
    """List the shipped recipes, or print one to copy and edit.

    Examples:

        bertsmith recipes

        bertsmith recipes show bert > my-bert.toml

        bertsmith recipes show sst2 --whole
    """
    if action is None:
        _list()
        return
    if name is None:
        raise ConfigError("name a recipe: bertsmith recipes show bert")
    text = _whole(name) if whole else _found(name)
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def _found(name: str) -> str:
    """The text of a recipe of either kind."""
    from bertsmith.training.finetune.recipe import FINETUNE_RECIPES
    from bertsmith.training.pretrain.recipe import PRETRAIN_RECIPES

    for shelf in (PRETRAIN_RECIPES, FINETUNE_RECIPES):
        if name in shelf.shipped():
            return shelf.text(name)
    if "." not in name and "/" not in name:
        raise unknown("recipe", name, {**PRETRAIN_RECIPES.shipped(), **FINETUNE_RECIPES.shipped()})
    return PRETRAIN_RECIPES.text(name)


def _whole(name: str) -> str:
    from bertsmith.config import to_toml
    from bertsmith.training.finetune.recipe import FINETUNE_RECIPES, load_finetune_recipe
    from bertsmith.training.pretrain.recipe import PRETRAIN_RECIPES, load_recipe

    recipe: Settings
    if name in FINETUNE_RECIPES.shipped():
        recipe = load_finetune_recipe(name)
    elif name in PRETRAIN_RECIPES.shipped():
        recipe = load_recipe(name)
    else:
        _found(name)  # an unknown name is answered for both kinds
        recipe = _of_a_file(name)
    return to_toml(recipe)


def _of_a_file(path: str) -> Settings:
    """A file of the user's is of the kind that takes its settings."""
    from bertsmith.training.finetune.recipe import load_finetune_recipe
    from bertsmith.training.pretrain.recipe import load_recipe

    try:
        return load_recipe(path)
    except ConfigError as first:
        try:
            return load_finetune_recipe(path)
        except ConfigError as second:
            raise ConfigError(
                f"{path} is neither a pre-training nor a fine-tuning recipe\n{first}\n{second}"
            ) from second


def _list() -> None:
    from bertsmith.training.finetune.recipe import FINETUNE_RECIPES, load_finetune_recipe
    from bertsmith.training.pretrain.recipe import PRETRAIN_RECIPES, load_recipe

    pretrain = {name: load_recipe(name).about for name in PRETRAIN_RECIPES.shipped()}
    finetune = {name: load_finetune_recipe(name).about for name in FINETUNE_RECIPES.shipped()}
    _table(
        "Pre-training: bertsmith pretrain RECIPE --corpus SHARDS --out DIR",
        {name: (about.summary, about.paper) for name, about in pretrain.items()},
    )
    sys.stdout.write("\n")
    _table(
        "Fine-tuning: bertsmith finetune DATA --model DIR --out DIR --recipe RECIPE",
        {name: (about.summary, about.source) for name, about in finetune.items()},
    )


def _table(heading: str, rows: Mapping[str, tuple[str, str]]) -> None:
    sys.stdout.write(f"{heading}\n")
    width = max(map(len, rows)) + 2
    for name, (summary, source) in rows.items():
        given = f" ({source})" if source else ""
        sys.stdout.write(f"  {name:<{width}}{summary}{given}\n")
