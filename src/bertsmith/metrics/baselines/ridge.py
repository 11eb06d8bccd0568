"""Ridge regression on a table of words, by conjugate gradients: no matrix is ever written out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bertsmith.metrics.arrays import Floats
from bertsmith.metrics.baselines.word_table import WordTable

_STEPS = 100
_CLOSE = 1e-6


def fitted(table: WordTable, targets: Floats, strength: float) -> Callable[[WordTable], Floats]:
    """A function from tables of new texts to (N,) numbers.

    Words count by how rare they are, and every row has length 1.
    """
    rarity = np.log((table.shape[0] + 1) / (table.counts() + 1)) + 1
    values = _values(table, rarity)
    mean = float(targets.mean())

    def normal(weights: Floats) -> Floats:
        return table.counts(table.sums(weights, values), values) + strength * weights

    weights = _solved(normal, table.counts(targets - mean, values))
    low, high = float(targets.min()), float(targets.max())

    def predict(asked: WordTable) -> Floats:
        # No answer beyond what was ever seen.
        return np.clip(mean + asked.sums(weights, _values(asked, rarity)), low, high)

    return predict


def _values(table: WordTable, rarity: Floats) -> Floats:
    values = rarity[table.features]
    lengths = np.sqrt(np.bincount(table.rows, values**2, minlength=table.shape[0]))
    result: Floats = values / lengths[table.rows]
    return result


def _solved(normal: Callable[[Floats], Floats], wanted: Floats) -> Floats:
    """The x with normal(x) = wanted (Hestenes, Stiefel 1952)."""
    x = np.zeros_like(wanted)
    rest, direction = wanted.copy(), wanted.copy()
    size = first = float(rest @ rest)
    for _ in range(_STEPS):
        if size <= _CLOSE**2 * first:
            break
        image = normal(direction)
        reach = size / float(direction @ image)
        x += reach * direction
        rest -= reach * image
        size, before = float(rest @ rest), size
        direction = rest + (size / before) * direction
    return x
