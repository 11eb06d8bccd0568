"""The most similar pairs of n vectors: the upper triangle of their products, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError
from bertsmith.search.store import Matrix

BLOCK = 2_048
ROUNDING = 1e-5
SPARE = 64  # further candidates, as rounding may exchange the last ones


@dataclass(frozen=True, slots=True)
class SimilarPair:
    """Two rows and their similarity; `first` < `second`."""

    first: int
    second: int
    similarity: float


def similar_pairs(
    vectors: Matrix,
    count: int,
    *,
    least: float = -1.0,
    texts: Sequence[str] | None = None,
) -> list[SimilarPair]:
    """The `count` most similar pairs of rows (n, D) by cosine, at least `least`; ties by row.

    With `texts`, rows of equal texts are compared once: only the first of them takes part.
    """
    if count < 1:
        raise ConfigError(f"the number of pairs must be at least 1, not {count}")
    kept = np.arange(len(vectors)) if texts is None else _first_of_equals(texts)
    norms = np.linalg.norm(vectors, axis=1)
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        raise ConfigError(
            f"row {bad[0] + 1:,}: its vector is zero or not finite, so it cannot be compared; "
            "remove or correct its text"
        )
    rows = torch.from_numpy((vectors[kept] / norms[kept, None]).astype(np.float32))
    best = _BestPairs(count + SPARE, least)
    for top in range(0, len(rows), BLOCK):
        for left in range(top, len(rows), BLOCK):
            products = rows[top : top + BLOCK] @ rows[left : left + BLOCK].T
            if top == left:
                upper = torch.triu(torch.ones_like(products, dtype=torch.bool), diagonal=1)
                products[~upper] = -torch.inf
            best.offer(products, top, left)
    return best.listed(vectors, kept, count)


class _BestPairs:
    def __init__(self, count: int, least: float) -> None:
        self._count = count
        self._least = least
        self._limit = least - ROUNDING
        self._first = np.zeros(0, dtype=np.int64)
        self._second = np.zeros(0, dtype=np.int64)
        self._score = np.zeros(0, dtype=np.float32)

    def offer(self, products: Tensor, top: int, left: int) -> None:
        better = products > self._limit
        found = int(torch.count_nonzero(better))
        if not found:
            return
        if found > 8 * self._count + 4_096:
            # Only the best of a block can be among the best of all.
            border = products.flatten().topk(min(self._count, products.numel())).values[-1]
            better &= products >= border
        row, column = better.nonzero(as_tuple=True)
        self._first = np.concatenate([self._first, row.numpy() + top])
        self._second = np.concatenate([self._second, column.numpy() + left])
        self._score = np.concatenate([self._score, products[row, column].numpy()])
        self._trim()

    def _trim(self) -> None:
        order = np.lexsort((self._second, self._first, -self._score))[: self._count]
        self._first, self._second = self._first[order], self._second[order]
        self._score = self._score[order]
        if len(order) == self._count:
            # A pair of an equal score may still come with a lower row: it must not be passed over.
            self._limit = float(np.nextafter(self._score[-1], np.float32(-2)))

    def listed(self, vectors: Matrix, kept: NDArray[np.int64], count: int) -> list[SimilarPair]:
        """The pairs with similarities that depend neither on blocks nor on rounding."""
        first, second = kept[self._first], kept[self._second]
        one, two = vectors[first].astype(np.float64), vectors[second].astype(np.float64)
        exact = np.einsum("ij,ij->i", one, two)
        exact /= np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
        scores = exact.astype(np.float32)
        order = np.lexsort((second, first, -scores))
        order = order[scores[order] >= np.float32(self._least)][:count]
        return [SimilarPair(int(first[i]), int(second[i]), float(scores[i])) for i in order]


def _first_of_equals(texts: Sequence[str]) -> NDArray[np.int64]:
    seen: dict[str, int] = {}
    for number, text in enumerate(texts):
        seen.setdefault(text, number)
    return np.fromiter(seen.values(), dtype=np.int64, count=len(seen))
