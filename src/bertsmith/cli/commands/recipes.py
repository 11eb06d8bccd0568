"""`bertsmith recipes`: the shipped recipes, and the text of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.console import write_lines
from bertsmith.errors import ConfigError, unknown

if TYPE_CHECKING:
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
    write_lines(_text(name, whole=whole).splitlines())


def _text(name: str, *, whole: bool) -> str:
    """A recipe of any kind, or a file, as TOML."""
    from bertsmith.config import to_toml
    from bertsmith.sentences.train.recipe import SENTENCE_RECIPES, load_sentence_recipe
    from bertsmith.training.finetune.recipe import FINETUNE_RECIPES, load_finetune_recipe
    from bertsmith.training.pretrain.recipe import PRETRAIN_RECIPES, load_recipe

    if name in FINETUNE_RECIPES.shipped():
        return to_toml(load_finetune_recipe(name)) if whole else FINETUNE_RECIPES.text(name)
    if name in PRETRAIN_RECIPES.shipped():
        return to_toml(load_recipe(name)) if whole else PRETRAIN_RECIPES.text(name)
    if name in SENTENCE_RECIPES.shipped():
        return to_toml(load_sentence_recipe(name)) if whole else SENTENCE_RECIPES.text(name)
    if "." not in name and "/" not in name:
        shelves = (PRETRAIN_RECIPES, FINETUNE_RECIPES, SENTENCE_RECIPES)
        raise unknown("recipe", name, [one for shelf in shelves for one in shelf.shipped()])
    text = PRETRAIN_RECIPES.text(name)  # a missing file is refused here
    return to_toml(_of_a_file(name)) if whole else text


def _of_a_file(path: str) -> Settings:
    """A file of the user's is of the kind that takes its settings."""
    from bertsmith.sentences.train.recipe import load_sentence_recipe
    from bertsmith.training.finetune.recipe import load_finetune_recipe
    from bertsmith.training.pretrain.recipe import load_recipe

    faults = []
    for read in (load_recipe, load_finetune_recipe, load_sentence_recipe):
        try:
            return read(path)
        except ConfigError as fault:
            faults.append(str(fault))
    raise ConfigError(
        f"{path} is no recipe of pre-training, fine-tuning or sentence training\n"
        + "\n".join(faults)
    )


def _list() -> None:
    from bertsmith.sentences.train.recipe import SENTENCE_RECIPES, load_sentence_recipe
    from bertsmith.training.finetune.recipe import FINETUNE_RECIPES, load_finetune_recipe
    from bertsmith.training.pretrain.recipe import PRETRAIN_RECIPES, load_recipe

    pretrain = {name: load_recipe(name).about for name in PRETRAIN_RECIPES.shipped()}
    finetune = {name: load_finetune_recipe(name).about for name in FINETUNE_RECIPES.shipped()}
    lines = ["Pre-training: bertsmith pretrain RECIPE --corpus SHARDS --out DIR"]
    lines += [_line(name, about.summary, about.paper) for name, about in pretrain.items()]
    lines += ["", "Fine-tuning: bertsmith finetune DATA --model DIR --out DIR --recipe RECIPE"]
    lines += [_line(name, about.summary, about.source) for name, about in finetune.items()]
    lines += ["", "Sentence vectors: bertsmith sentences train DATA ... --recipe RECIPE"]
    sentences = {name: load_sentence_recipe(name).about for name in SENTENCE_RECIPES.shipped()}
    lines += [_line(name, about.summary, about.source) for name, about in sentences.items()]
    write_lines(lines)


def _line(name: str, summary: str, source: str) -> str:
    return f"  {name:<18}{summary}" + (f" ({source})" if source else "")
