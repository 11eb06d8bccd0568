"""Packing by token budget: which texts, passages or examples share a batch, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Result = TypeVar("Result")


def pack(
    sizes: Sequence[int] | NDArray[np.integer],
    budget: int,
    *,
    order: Sequence[int] | NDArray[np.integer] | None = None,
) -> Iterator[list[int]]:
    """Indices of items in batches of at most `budget` tokens; a larger item is a batch of its own.

    Without an `order` the largest come first, equal ones as they stand: neighbors of one length
    need no padding in attention, and the last batches, which decide when parallel workers end, are
    cheap.
    """
    tokens = np.asarray(sizes).tolist()
    if order is None:
        order = sorted(range(len(tokens)), key=lambda item: -tokens[item])
    batch: list[int] = []
    total = 0
    for item in np.asarray(order).tolist():
        if batch and total + tokens[item] > budget:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += tokens[item]
    if batch:
        yield batch


def in_passes(
    sizes: Sequence[int] | NDArray[np.integer],
    budget: int,
    run: Callable[[list[int]], Iterable[Result]],
) -> list[Result]:
    """A result for each item, in their order; `run` gives those of the items of one batch."""
    found: dict[int, Result] = {}
    for numbers in pack(sizes, budget):
        found.update(zip(numbers, run(numbers), strict=True))
    return [found[number] for number in range(len(sizes))]
