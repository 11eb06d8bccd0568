"""Packing by token budget: which texts, passages or examples share a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray


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
