"""`bertsmith recipes`: the shipped recipes, and the text of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.shared.console import write_lines
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError, unknown
from bertsmith.setting import OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.config import Settings
    from bertsmith.training.recipe_files import RecipeShelf

Action = Annotated[
    Literal["show"] | None, typer.Argument(metavar="[show RECIPE]", help="Print a recipe.")
]
Name = Annotated[str | None, typer.Argument(hidden=True)]
Whole = Annotated[bool, Setting("Include all defaults and everything it extends.", OUTPUT)]


@spread
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
    write_lines(_text(name, whole=whole).splitlines())


def _shelves() -> list[tuple[str, RecipeShelf, Callable[[str], Any]]]:
    """The recipes of each kind: how they are used, where they are, how one is read."""
    from bertsmith.sentences.train.recipe import SENTENCE_RECIPES, load_sentence_recipe
    from bertsmith.studies.ablation.variations import ABLATIONS, load_grid
    from bertsmith.training.kinds.labeled.recipe import FINETUNE_RECIPES, load_finetune_recipe
    from bertsmith.training.kinds.spelling.recipe import CORRECT_RECIPES, load_correct_recipe
    from bertsmith.training.kinds.write.recipe import WRITE_RECIPES, load_write_recipe
    from bertsmith.training.pretrain.recipe import PRETRAIN_RECIPES, load_recipe

    return [
        (
            "Pre-training: bertsmith pretrain RECIPE --corpus SHARDS --out DIR",
            PRETRAIN_RECIPES,
            load_recipe,
        ),
        (
            "Fine-tuning: bertsmith finetune DATA --model DIR --out DIR --recipe RECIPE",
            FINETUNE_RECIPES,
            load_finetune_recipe,
        ),
        (
            "Sentence vectors: bertsmith sentences train DATA ... --recipe RECIPE",
            SENTENCE_RECIPES,
            load_sentence_recipe,
        ),
        (
            "Writing: bertsmith finetune PAIRS --task write|similar ... --recipe RECIPE",
            WRITE_RECIPES,
            load_write_recipe,
        ),
        (
            "Grids of variations: bertsmith ablate GRID --corpus SHARDS --probe FILE",
            ABLATIONS,
            load_grid,
        ),
        (
            "Correction: bertsmith finetune PAIRS --task correct ... --recipe RECIPE",
            CORRECT_RECIPES,
            load_correct_recipe,
        ),
    ]


def _text(name: str, *, whole: bool) -> str:
    """A recipe of any kind, or a file, as TOML."""
    from bertsmith.config import to_toml

    shelves = _shelves()
    for _, shelf, read in shelves:
        if name in shelf.shipped():
            return to_toml(read(name)) if whole else shelf.text(name)
    if "." not in name and "/" not in name:
        raise unknown("recipe", name, [one for _, shelf, _ in shelves for one in shelf.shipped()])
    text = shelves[0][1].text(name)  # a missing file is refused here
    return to_toml(_of_a_file(name)) if whole else text


def _of_a_file(path: str) -> Settings:
    """A file of the user's is of the kind that takes its settings."""
    faults = []
    for _, _, read in _shelves():
        try:
            settings: Settings = read(path)
        except ConfigError as fault:
            faults.append(str(fault))
        else:
            return settings
    raise ConfigError(
        f"{path} is no recipe of pre-training, fine-tuning, sentence training or writing, and no "
        "grid of variations\n" + "\n".join(faults)
    )


def _list() -> None:
    lines: list[str] = []
    for title, shelf, read in _shelves():
        lines += [*([""] if lines else []), title]
        for name in shelf.shipped():
            about = read(name).about
            source = about.source
            lines.append(_line(name, about.summary, source))
    write_lines(lines)


def _line(name: str, summary: str, source: str) -> str:
    return f"  {name:<18}{summary}" + (f" ({source})" if source else "")
