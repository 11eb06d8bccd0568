"""Mean and covariance of any number of vectors in one pass, and samples of them: bounded memory."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import TextError
from bertsmith.metrics.arrays import Floats

AnyVectors = NDArray[np.floating]


class Moments:
    """Count, mean (D,) and scatter matrix (D, D) in float64, updated block by block (Chan 1979)."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self.mean: Floats = np.zeros(width)
        self._scatter: Floats = np.zeros((width, width))

    def add(self, vectors: AnyVectors) -> None:
        """Further vectors (n, D); one that is not finite is refused by its number."""
        if not len(vectors):
            return
        block = np.asarray(vectors, dtype=np.float64)
        check_finite(block, before=self.count)
        mean = block.mean(axis=0)
        centered = block - mean
        total = self.count + len(block)
        shift = mean - self.mean
        self._scatter += centered.T @ centered
        self._scatter += np.outer(shift, shift) * (self.count * len(block) / total)
        self.mean = self.mean + shift * (len(block) / total)
        self.count = total

    def covariance(self) -> Floats:
        """(D, D), divided by n - 1."""
        covariance: Floats = self._scatter / max(1, self.count - 1)
        return covariance


def moments_of(blocks: Iterable[AnyVectors], width: int) -> Moments:
    """The moments of blocks (n, D) of vectors."""
    moments = Moments(width)
    for block in blocks:
        moments.add(block)
    return moments


def check_finite(vectors: AnyVectors, *, before: int = 0) -> None:
    """Refuse vectors that are not finite by the number of the first, counted from 1."""
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise TextError(
            f"the vector of text {before + int(broken[0]) + 1:,} holds values that are not finite; "
            "the weights of the model are broken"
        )


class Reservoir:
    """A uniform sample of at most `size` vectors of a stream."""

    def __init__(self, size: int, width: int, seed: int) -> None:
        self._size = size
        self._kept = np.empty((0, width), dtype=np.float32)
        self._keys = np.empty(0)
        self._random = np.random.default_rng(seed)

    def add(self, vectors: AnyVectors) -> None:
        """Further vectors (n, D): each draws a key, and the smallest keys stay."""
        keys = np.concatenate([self._keys, self._random.random(len(vectors))])
        rows = np.concatenate([self._kept, np.asarray(vectors, dtype=np.float32)])
        if len(keys) > self._size:
            stay = np.sort(np.argpartition(keys, self._size)[: self._size])
            keys, rows = keys[stay], rows[stay]
        self._keys, self._kept = keys, rows

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The sample, in the order of the stream: (n, D)."""
        return self._kept
