"""Reciprocal rank fusion: several rankings as one, whatever their scores mean."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from bertsmith.errors import ConfigError

CONSTANT = 60  # Cormack, Clarke and Buettcher 2009
DEPTH = 100  # results of each ranking that are fused

T = TypeVar("T", bound=Hashable)


def fuse(rankings: Sequence[Sequence[T]], weights: Sequence[float]) -> list[tuple[T, float]]:
    """Items with the sum of weight / (60 + rank), ranks from 1; the best first.

    Items of equal sums stay in the order of the rankings.
    """
    if len(rankings) != len(weights) or any(weight < 0 for weight in weights) or not sum(weights):
        raise ConfigError(f"weights of rankings are numbers from 0, not all 0, not {weights}")
    sums: dict[T, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(ranking, start=1):
            sums[item] = sums.get(item, 0.0) + weight / (CONSTANT + rank)
    return sorted(sums.items(), key=lambda pair: -pair[1])
