"""Rows of an ablation: what each changes, in full names and in shorthands, and for how long."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bertsmith.config import Overrides, Settings, changed, differences, read_toml, validated
from bertsmith.corpus.shards import Corpus
from bertsmith.errors import ConfigError, unknown
from bertsmith.files.digest import json_digest
from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe
from bertsmith.training.pretrain.recipe import (
    PRETRAIN_RECIPES,
    PretrainRecipe,
    load_recipe,
)
from bertsmith.training.pretrain.workload import PretrainWorkload
from bertsmith.training.recipe import About
from bertsmith.training.recipe_files import RecipeShelf
from bertsmith.wording import counted

ABLATIONS = RecipeShelf("ablate")
BASE = "base"
LONGEST = 80  # bytes of a name in the name of a file
PROBE = "probe."  # settings of the fine-tuning of probes begin with this

SHORT_SECTIONS: Mapping[str, str] = {
    "objectives.": "program.objectives.",
    "mask.": "program.mask.",
    "head.": "probe.head.",
}
"""What a name may begin with, and what that stands for."""

SHORT_SETTINGS: Mapping[str, str] = {
    "size": "model.size",
    "bilstm": "probe.head.lstm",
    "mix": "program.mask.replacement",
}
"""Names of single settings, and what they stand for."""

READINGS: Mapping[str, tuple[str, ...]] = {
    "left_to_right": ("model.sees=before", "program.kind=causal"),
    "bidirectional": ("model.sees=all",),
}
"""Values of `reading`: which tokens each token sees, with the program that learns it."""

EQUAL: Mapping[str, str] = {
    "schedule.steps": "all rows train on equally many tokens",
    "schedule.budget": "all rows train on equally many tokens",
    "eval.": "all rows are measured on the same held-out text",
    "run.": "all rows have the same seeds and run in the same way",
    "save.": "it changes nothing that is learned",
    "log.": "it changes nothing that is learned",
    "about.": "it changes nothing that is learned",
}
"""Settings that cannot vary, and why."""


class GridRow(Settings):
    """A row of a grid: its name and what it changes."""

    name: Annotated[str, Field(min_length=1)]
    settings: Annotated[tuple[str, ...], Field(min_length=1, strict=False)]


class AblationGrid(Settings):
    """A file of rows: the recipe they vary, settings of all rows, and the rows."""

    about: About = About()
    recipe: str
    settings: Annotated[tuple[str, ...], Field(strict=False)] = ()
    vary: Annotated[tuple[GridRow, ...], Field(min_length=1, strict=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """A row: the recipe of pre-training, and settings of the fine-tuning of its probes.

    `note` says why the row cannot differ from the base in this run.
    """

    name: str
    given: tuple[str, ...]
    recipe: PretrainRecipe
    probe: tuple[str, ...] = ()
    note: str = ""

    @property
    def slug(self) -> str:
        """The name in letters that a file may have; a long one ends in a digest of the whole."""
        plain = re.sub(r"[^\w.+-]+", "-", self.name.strip()).strip("-.") or "row"
        if len(plain.encode()) <= LONGEST:
            return plain
        start = plain.encode()[: LONGEST - 9].decode(errors="ignore")
        return f"{start}-{json_digest(self.name)[:8]}"


def find_grid(named: str) -> AblationGrid | None:
    """A shipped grid, or a file of one; None if the name is that of a recipe."""
    shipped = ABLATIONS.shipped()
    path = Path(named).expanduser()
    if named in shipped:
        tree, place = shipped[named].tree, shipped[named].place
    elif path.is_file() and "vary" in (tree := read_toml(path)):
        place = str(path)
    else:
        recipes = PRETRAIN_RECIPES.shipped()
        if named not in recipes and not path.exists() and get_close_matches(named, shipped):
            raise unknown("recipe or grid of variations", named, {**shipped, **recipes})
        return None
    return validated(AblationGrid, tree, place)


def load_grid(named: str) -> AblationGrid:
    """A grid by name or path."""
    grid = find_grid(named)
    if grid is None:
        raise unknown("grid of variations", named, ABLATIONS.shipped())
    return grid


def full_settings(setting: str) -> tuple[str, ...]:
    """A setting as `--vary` takes it -> settings in full: "mask.copies=10" is one of program."""
    name, equals, value = (part.strip() for part in setting.partition("="))
    if not equals or not value:
        raise ConfigError(f"--vary {setting!r} is no setting; write section.key=value")
    if name == "reading":
        if value not in READINGS:
            raise unknown("reading", value, READINGS)
        return READINGS[value]
    name = SHORT_SETTINGS.get(name, name)
    for short, full in SHORT_SECTIONS.items():
        if name.startswith(short):
            name = full + name.removeprefix(short)
            break
    for prefix, why in EQUAL.items():
        if name == prefix.rstrip(".") or (prefix.endswith(".") and name.startswith(prefix)):
            raise ConfigError(
                f"--vary {setting!r}: {name} cannot vary, since {why}; set it for all rows with "
                f"--set {name}={value}"
            )
    return (f"{name}={value}",)


def variations(
    recipe: str | Path, settings: Overrides, rows: Sequence[GridRow]
) -> tuple[Variation, ...]:
    """The base, then every row; refuses rows that repeat another one or change nothing."""
    base = Variation(name=BASE, given=(), recipe=load_recipe(recipe, settings))
    if base.recipe.schedule.steps is None:
        raise ConfigError(
            "rows of an ablation train on equally many tokens, and a budget of time does not give "
            "that; set schedule.steps"
        )
    if not base.recipe.eval.held_out:
        raise ConfigError("nothing is held out to measure on; set eval.held_out=0.02")
    found = [base]
    for row in rows:
        full = [one for given in row.settings for one in full_settings(given)]
        probe = tuple(one.removeprefix(PROBE) for one in full if one.startswith(PROBE))
        load_finetune_recipe(None, probe)  # mistakes show before anything is trained
        own = load_recipe(recipe, [*settings, *(one for one in full if not one.startswith(PROBE))])
        if own.schedule.steps != base.recipe.schedule.steps:
            raise ConfigError(f"{row.name}: {EQUAL['schedule.steps']}; set steps with --steps")
        variation = Variation(name=row.name, given=row.settings, recipe=own, probe=probe)
        _check_new(variation, found)
        found.append(variation)
    if len(found) == 1:
        raise ConfigError(
            'there is nothing to vary; give --vary "mask.rate=0.3", or a grid such as bert-paper'
        )
    return tuple(found)


def _check_new(one: Variation, others: Sequence[Variation]) -> None:
    for other in others:
        if other.slug == one.slug:
            raise ConfigError(f"two rows are called {one.name!r}; name each once")
        if not differences(other.recipe, one.recipe) and other.probe == one.probe:
            what = f"changes nothing of {BASE}" if other.name == BASE else f"repeats {other.name!r}"
            raise ConfigError(f"--vary {'; '.join(one.given)!r} {what}; leave it out")


def equal_tokens(rows: Sequence[Variation], corpus: Corpus) -> tuple[Variation, ...]:
    """The rows with as many steps as they need to read the tokens of the first one, the base.

    A step has equally many texts in all rows, but texts of another kind have other lengths: those
    without next sentence prediction are longer. Lengths are the mean of an epoch; which of its
    texts a short run reads is left to chance, a percent or two in some hundred steps.
    """
    base = rows[0].recipe
    steps = base.schedule.steps or 0
    tokens = steps * PretrainWorkload(base, corpus).step_tokens()
    found = []
    for row in rows:
        work = PretrainWorkload(row.recipe, corpus)
        count = max(1, round(tokens / work.step_tokens()))
        changes: dict[str, int | None] = {}
        if count != row.recipe.schedule.steps:
            changes["schedule.steps"] = count
        note = ""
        draws = [row.recipe.program.draw_of(epoch) for epoch in range(work.epochs(count))]
        if row is not rows[0] and _static(row) and len(set(draws)) == len(draws):
            changes["program.mask.copies"] = None  # the same masks, so the same run
            note = (
                f"the run begins {counted(len(draws), 'epoch')} of the corpus, so static masking "
                f"with {counted(_static(row) or 0, 'mask')} per text repeats none: no difference "
                "is possible"
            )
        recipe = changed(row.recipe, changes) if changes else row.recipe
        found.append(replace(row, recipe=recipe, note=note))
    return tuple(found)


def _static(row: Variation) -> int | None:
    """The copies of static masking."""
    mask = getattr(row.recipe.program, "mask", None)
    return None if mask is None else mask.copies
