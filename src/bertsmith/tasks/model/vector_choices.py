"""Every way to make a vector of a text that a model allows, by name."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.errors import ConfigError, unknown
from bertsmith.tasks.model.text_vector import LAST_FOUR, Layers, VectorSettings

POOLINGS = ("first", "mean", "max", "attention")
COMBINED = ("sum4", "concat4", "weighted", "all_first")
NAMED = ("last", *COMBINED)
FOUR = ("sum4", "concat4")


def vector_choices(
    blocks: int, poolings: Sequence[str] = (), layers: Sequence[str | int] = ()
) -> dict[str, VectorSettings]:
    """Choices by name ("mean-last", "first-layer11") for a model of so many blocks.

    () stands for all poolings, and for the last layer, the one below it and every combination.
    Combinations of four layers need four blocks; the first tokens of all layers have no other
    pooling.
    """
    wanted = [_pooling(name) for name in poolings or POOLINGS]
    read = [_layers(name, blocks) for name in layers or _usual(blocks)]
    found: dict[str, VectorSettings] = {}
    for which in read:
        for pooling in wanted:
            if which == "all_first" and pooling != "first":
                continue
            choice = VectorSettings(pooling=pooling, layers=which)  # type: ignore[arg-type]
            found[choice_name(choice)] = choice
    if not found:
        raise ConfigError("all_first reads first tokens alone: give --pooling first with it")
    return found


def choice_name(choice: VectorSettings) -> str:
    """A short name that tells it from all others."""
    if choice.layers == "all_first":
        return "first-all"
    which = f"layer{choice.layers}" if isinstance(choice.layers, int) else choice.layers
    return f"{choice.pooling}-{which}"


def _usual(blocks: int) -> list[str | int]:
    below: list[str | int] = [blocks - 1] if blocks > 1 else []
    return ["last", *below, *(n for n in COMBINED if blocks >= LAST_FOUR or n not in FOUR)]


def _pooling(name: str) -> str:
    if name not in POOLINGS:
        raise unknown("pooling", name, POOLINGS)
    return name


def _layers(name: str | int, blocks: int) -> Layers:
    if isinstance(name, int) or name.isdecimal():
        number = int(name)
        if number > blocks:
            raise ConfigError(
                f"there is no layer {number}; the model has {blocks}, and 0 are the embeddings"
            )
        return number
    if name not in NAMED:
        raise unknown("choice of layers", name, (*NAMED, "a number"))
    if name in FOUR and blocks < LAST_FOUR:
        raise ConfigError(f"{name} reads four layers; the model has {blocks}")
    return name  # type: ignore[return-value]
