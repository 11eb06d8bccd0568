"""`bertsmith recipes`: what can be pre-trained as it is, and the text of each recipe."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from bertsmith.errors import ConfigError

Action = Annotated[
    Literal["show"] | None, typer.Argument(metavar="[show RECIPE]", help="Print one recipe.")
]
Name = Annotated[str | None, typer.Argument(hidden=True)]
Whole = Annotated[
    bool, typer.Option("--whole", help="With every default, and what it extends, spelled out.")
]


def recipes(action: Action = None, name: Name = None, whole: Whole = False) -> None:
    """List the recipes that come with bertsmith, or print one to copy and change.

    Examples:

        bertsmith recipes

        bertsmith recipes show bert > my-bert.toml
    """
    if action is None:
        _list()
        return
    if name is None:
        raise ConfigError("say which recipe to show: bertsmith recipes show bert")
    from bertsmith.config import to_toml
    from bertsmith.training.recipe import find_recipe, load_recipe

    text = to_toml(load_recipe(name)) if whole else find_recipe(name).read_text(encoding="utf-8")
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def _list() -> None:
    from bertsmith.training.recipe import load_recipe, shipped

    names = shipped()
    width = max(map(len, names)) + 2
    for name in names:
        about = load_recipe(name).about
        paper = f" ({about.paper})" if about.paper else ""
        sys.stdout.write(f"{name:<{width}}{about.summary}{paper}\n")
