"""How well an approximate search finds what the exact one finds, and the effort that it takes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.config import Settings
from bertsmith.metrics.significance import bootstrap

EXACT_BELOW = 100_000  # rows; up to there a scan of all rows is as fast as a graph
K = 10
QUERIES = 200
WANTED = 0.98


class RecallRecord(Settings):
    """Recall of the approximate search against the exact one, with its 95 % interval."""

    k: int
    queries: int
    mean: float
    low: float
    high: float


def recall_words(recall: RecallRecord) -> str:
    """The recall of a graph in words."""
    return (
        f"recall@{recall.k} {recall.mean:.3f} ({recall.low:.3f} to {recall.high:.3f}) against "
        f"exact search, {recall.queries} queries"
    )


def least_effort(
    own: Sequence[int],
    true: Sequence[Sequence[int]],
    search: Callable[[int], Sequence[Sequence[int]]],
    efforts: Sequence[int],
) -> tuple[int, RecallRecord]:
    """The least effort whose recall is surely enough, and that recall.

    The queries are rows of the index: `own` are their numbers, `true` the K + 1 nearest rows of
    each; a row is left out of its own results. The lower end of the 95 % interval must reach 0.98,
    or the effort is the largest one.
    """
    wanted = [set(_others(row, one)) for row, one in zip(true, own, strict=True)]
    for effort in efforts:
        near = search(effort)
        shares = np.array(
            [
                len(want & set(_others(row, one))) / len(want)
                for want, row, one in zip(wanted, near, own, strict=True)
            ]
        )
        recall = bootstrap(_mean_of(shares), len(shares))
        if recall.low >= WANTED:
            break
    record = RecallRecord(
        k=K,
        queries=len(shares),
        mean=round(recall.value, 4),
        low=round(recall.low, 4),
        high=round(recall.high, 4),
    )
    return effort, record


def _others(row: Collection[int], own: int) -> list[int]:
    return [int(number) for number in row if number != own][:K]


def _mean_of(shares: NDArray[np.float64]) -> Callable[[NDArray[np.int64]], float]:
    return lambda rows: float(shares[rows].mean())
