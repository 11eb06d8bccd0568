"""Exact search: products of blocks of rows with all queries, and a running list of the best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.search.store import Matrix

BLOCK = 2_048  # rows multiplied at once: as float32 they fit into a cache
STREAMED = 2  # up to so many queries, rows are read once per query
QUERIES = 256
OFFERED = 1 << 20  # scores looked at together
SPARE = 8  # further candidates, as rounding may exchange the last ones

Positions = NDArray[np.int64]
Flags = NDArray[np.bool_]


class BestRows:
    """The k best rows for each of q queries; of equal scores the lower position wins."""

    def __init__(self, queries: int, k: int) -> None:
        self._queries, self._k = queries, k
        self._limit = torch.full((queries, 1), -torch.inf)  # the k-th best score so far
        self._query = np.zeros(0, dtype=np.int64)
        self._row = np.zeros(0, dtype=np.int64)
        self._score = np.zeros(0, dtype=np.float32)

    def offer(self, scores: Tensor, first: int) -> None:
        """Scores (q, n) of the rows from position `first` on; positions only rise."""
        better = scores > self._limit
        count = int(torch.count_nonzero(better))
        if not count:
            return
        if count > 4 * self._queries * self._k + 256 and scores.shape[1] > self._k:
            better &= scores >= scores.topk(self._k).values[:, -1:]
        query, row = better.nonzero(as_tuple=True)
        self._merge(query.numpy(), row.numpy() + first, scores[query, row].numpy())

    def _merge(self, query: Positions, row: Positions, score: Matrix) -> None:
        query = np.concatenate([self._query, query])
        row = np.concatenate([self._row, row])
        score = np.concatenate([self._score, score])
        order = np.lexsort((row, -score, query))
        query = query[order]
        starts = np.searchsorted(query, np.arange(self._queries))
        rank = np.arange(len(query)) - starts[query]
        kept = order[rank < self._k]
        last = rank == self._k - 1
        self._limit[torch.from_numpy(query[last]), 0] = torch.from_numpy(score[order[last]])
        self._query, self._row, self._score = query[rank < self._k], row[kept], score[kept]

    def lists(self) -> list[Positions]:
        """The positions for each query, the best first."""
        ends = np.searchsorted(self._query, np.arange(self._queries + 1))
        return [self._row[ends[i] : ends[i + 1]] for i in range(self._queries)]


def scan(
    rows: Iterable[tuple[int, NDArray[Any], Matrix | None]],
    queries: Matrix,
    k: int,
    alive: Flags | None = None,
) -> list[Positions]:
    """The positions of the k best rows for each query (q, D), by products, the best first.

    `rows` are (position of the first row, rows (n, D) of any type, scales (n,) or None), in order.
    Rows that are not `alive` (N,) are passed over.
    """
    given = list(rows)
    found: list[Positions] = []
    for start in range(0, len(queries), QUERIES):
        part = torch.from_numpy(np.ascontiguousarray(queries[start : start + QUERIES]))
        best = BestRows(len(part), k)
        for first, matrix, scales in given:
            for place, scores in _products(matrix, scales, part):
                if alive is not None:
                    dead = ~alive[first + place : first + place + scores.shape[1]]
                    scores[:, torch.from_numpy(dead)] = -torch.inf
                best.offer(scores, first + place)
        found += best.lists()
    return found


def _products(
    matrix: NDArray[Any], scales: Matrix | None, queries: Tensor
) -> Iterator[tuple[int, Tensor]]:
    """(place, scores (q, n)) over a segment; small blocks are multiplied, large ones offered."""
    size = max(BLOCK, OFFERED // len(queries) // BLOCK * BLOCK)
    held = torch.empty((0, 0))  # a block as float32, in memory that is used again
    if matrix.dtype != np.float32:
        held = torch.empty((BLOCK, matrix.shape[1]))
    for start in range(0, len(matrix), size):
        block = matrix[start : start + size]
        scores = torch.empty((len(queries), len(block)))
        for at in range(0, len(block), BLOCK):
            part = torch.from_numpy(block[at : at + BLOCK])
            if matrix.dtype == np.float32:
                scores[:, at : at + BLOCK] = _product(queries, part)
            else:
                scores[:, at : at + BLOCK] = queries @ held[: len(part)].copy_(part).T
        if scales is not None:
            scores *= torch.from_numpy(np.asarray(scales[start : start + size]))
        yield start, scores


def _product(queries: Tensor, rows: Tensor) -> Tensor:
    """(q, D), (n, D) -> (q, n) of rows that lie in memory, not in a cache.

    einsum streams through them faster than BLAS, which wins with several queries.
    """
    if len(queries) > STREAMED:
        return queries @ rows.T
    given = rows.numpy()
    return torch.from_numpy(np.stack([np.einsum("ij,j->i", given, q.numpy()) for q in queries]))
