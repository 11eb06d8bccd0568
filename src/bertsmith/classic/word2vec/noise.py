"""Noise words and subsampling as tables of 32-bit thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ALL = (1 << 32) - 1


def noise_shares(counts: NDArray[np.int64], power: float) -> Floats:
    """The probability of each word as noise (V,): its count to a power."""
    weights = np.asarray(counts, dtype=np.float64) ** power
    weights[np.asarray(counts) == 0] = 0.0
    shares: Floats = weights / weights.sum()
    return shares


def alias_table(shares: Floats) -> NDArray[np.uint32]:
    """Walker's alias table (V, 2): a drawn place stays below the threshold, else the other word.

    Two draws of 32 bits give a word, exactly to 2^-32 (Vose 1991).
    """
    size = len(shares)
    scaled = (shares * size).tolist()
    others = list(range(size))
    small = [word for word, share in enumerate(scaled) if share < 1.0]
    large = [word for word, share in enumerate(scaled) if share >= 1.0]
    while small and large:
        poor, rich = small.pop(), large[-1]
        others[poor] = rich
        scaled[rich] -= 1.0 - scaled[poor]
        if scaled[rich] < 1.0:
            small.append(large.pop())
    for word in (*small, *large):  # 1 but for rounding
        scaled[word], others[word] = 1.0, word
    thresholds = np.clip(np.round(np.array(scaled) * 2.0**32), 0, _ALL)
    return np.stack([thresholds, np.array(others)], axis=1).astype(np.uint32)


def keep_thresholds(counts: NDArray[np.int64], sample: float) -> NDArray[np.uint32]:
    """The largest draw of 32 bits with which a word stays in the text (V,).

    p = (sqrt(f / t) + 1) t / f, f the count and t = `sample` x all words; 0 keeps every word.
    """
    if not sample:
        return np.full(len(counts), _ALL, dtype=np.uint32)
    limit = sample * float(np.sum(counts))
    with np.errstate(divide="ignore"):
        ratio = limit / np.asarray(counts, dtype=np.float64)
    shares = np.minimum(np.sqrt(ratio) + ratio, 1.0)
    return np.where(shares >= 1.0, _ALL, np.round(shares * 2.0**32)).astype(np.uint32)
