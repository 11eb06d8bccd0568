"""Recipes as files: shipped ones by name, others by path; layers and overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.config import Tree, overridden, read_layers
from bertsmith.errors import ConfigError, unknown

RECIPES = Path(__file__).parents[1] / "recipes"


@dataclass(frozen=True, slots=True)
class Shelf:
    """The shipped recipes of one command, in a folder that is called like it.

    Of each pair in `either_or` (section, key, key) only one can hold: what an override names takes
    the place of the other.
    """

    command: str
    either_or: tuple[tuple[str, str, str], ...] = ()

    def shipped(self) -> dict[str, Path]:
        """The recipes that come with the package, by name."""
        files = (RECIPES / self.command).glob("*.toml")
        return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}

    def find(self, named: str, *, beside: Path | None = None) -> Path:
        """The file of a recipe, by name or by path; paths inside recipes count from `beside`."""
        known = self.shipped()
        if named in known:
            return known[named]
        path = Path(named).expanduser()
        if beside is not None and not path.is_absolute():
            path = beside / path
        if path.is_file():
            return path
        if path.suffix == ".toml" or len(path.parts) > 1:
            raise ConfigError(
                f"there is no recipe file {path}; `bertsmith recipes` lists known names"
            )
        for other in RECIPES.glob(f"*/{path.name}.toml"):
            raise ConfigError(
                f"the recipe {named!r} is one of `bertsmith {other.parent.name}`; those of "
                f"{self.command} are {', '.join(known)}"
            )
        raise unknown("recipe", named, known)

    def tree(self, named: str | Path, overrides: Sequence[str]) -> tuple[Tree, str]:
        """The settings of a recipe, "section.key=value" laid over them, and what to call both."""
        path = self.find(str(named))
        tree = read_layers(path, lambda name, folder: self.find(name, beside=folder))
        for override in overrides:
            given = override.replace(" ", "")
            for section, one, other in self.either_or:
                for key, rival in ((one, other), (other, one)):
                    if given.startswith(f"{section}.{key}="):
                        tree = _without(tree, section, rival)
            tree = overridden(tree, [override])
        return tree, str(named) if not overrides else f"{named} with {', '.join(overrides)}"


def _without(tree: Mapping[str, Any], section: str, key: str) -> Tree:
    table = tree.get(section)
    if not isinstance(table, Mapping):
        return dict(tree)
    return {**tree, section: {name: value for name, value in table.items() if name != key}}
