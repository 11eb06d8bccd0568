"""Recipes: shipped ones by name, others by path; layers and overrides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.config import (
    Layer,
    Override,
    Overrides,
    Tree,
    merge_layers,
    overridden,
    tree_to_toml,
)
from bertsmith.errors import ConfigError, unknown

RECIPES = Path(__file__).parents[1] / "recipes"
COMMANDS = {
    "write": "finetune --task write",
    "sentences": "sentences train",
    "correct": "finetune --task correct",
}
DATA_SETS = "data_sets.toml"  # one small recipe per table


@dataclass(frozen=True, slots=True)
class RecipeShelf:
    """The shipped recipes of one command, in a folder that has its name.

    A file is a recipe; each table of data_sets.toml is one, too. Of each pair in `either_or`
    (section, key, key) only one can be set: an override of one removes the other. `kinds` has the
    default of a setting that says which table its section is: another value begins the section
    anew, since the settings of one kind mean nothing to another.
    """

    command: str
    either_or: tuple[tuple[str, str, str], ...] = ()
    kinds: tuple[tuple[str, str, str], ...] = ()

    def shipped(self) -> dict[str, Layer]:
        """The recipes that come with the package, by name."""
        files = sorted((RECIPES / self.command).glob("*.toml"), key=lambda path: path.stem)
        recipes = {}
        for path in files:
            layer = Layer.of_file(path)
            if path.name != DATA_SETS:
                recipes[path.stem] = layer
                continue
            for name, table in layer.tree.items():
                recipes[name] = Layer(table, f"{layer.place}: {name}", path.parent)
        return dict(sorted(recipes.items()))

    def find(self, named: str, *, folder: Path | None = None) -> Layer:
        """A recipe by name or by path; paths inside recipes are relative to `folder`."""
        known = self.shipped()
        if named in known:
            return known[named]
        path = Path(named).expanduser()
        if folder is not None and not path.is_absolute():
            path = folder / path
        if path.is_file():
            return Layer.of_file(path)
        if path.suffix == ".toml" or len(path.parts) > 1:
            raise ConfigError(
                f"there is no recipe file {path}; `bertsmith recipes` lists known names"
            )
        for other in sorted(path.name for path in RECIPES.iterdir() if path.is_dir()):
            if named in RecipeShelf(other).shipped():
                command = COMMANDS.get(other, other)
                raise ConfigError(
                    f"the recipe {named!r} is one of `bertsmith {command}`; those of "
                    f"{COMMANDS.get(self.command, self.command)} are {', '.join(known)}"
                )
        raise unknown("recipe", named, known)

    def text(self, named: str) -> str:
        """A recipe as TOML, with its comments if it is a file of its own."""
        layer = self.find(named)
        path = Path(layer.place)
        return path.read_text(encoding="utf-8") if path.is_file() else tree_to_toml(layer.tree)

    def tree(self, named: str | Path, overrides: Overrides) -> tuple[Tree, str]:
        """The settings of a recipe, others laid over them, and what to call both."""
        top = self.find(str(named))
        tree = merge_layers(top, lambda name, folder: self.find(name, folder=folder))
        given = [Override.parse(one) if isinstance(one, str) else one for one in overrides]
        for setting in given:
            for section, one, other in self.either_or:
                for key, rival in ((one, other), (other, one)):
                    if setting.name == f"{section}.{key}":
                        tree = _without(tree, section, rival)
            for section, key, usual in self.kinds:
                if setting.name == f"{section}.{key}" and key not in tree.get(section, {}):
                    tree = {**tree, section: {key: usual, **tree.get(section, {})}}
            tree = overridden(tree, [setting])
        return tree, str(named) if not overrides else f"{named} with {', '.join(map(str, given))}"


def _without(tree: Mapping[str, Any], section: str, key: str) -> Tree:
    table = tree.get(section)
    if not isinstance(table, Mapping):
        return dict(tree)
    return {**tree, section: {name: value for name, value in table.items() if name != key}}
