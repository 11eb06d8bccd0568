"""Retrieval: accuracy, precision and recall at k, MRR@10, nDCG@10 and MAP@100, by query.

Conventions are those of sentence-transformers' InformationRetrievalEvaluator: gains are 1 or 0,
precision divides by k, average precision by the smaller of k and the number of relevant documents.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats, Ints, check_rows
from bertsmith.metrics.metric import Metric

CUTS = (1, 3, 5, 10)
RANKED = 100  # documents per query that the figures look at
_TEN = 10
NAMES = (
    "ndcg@10",
    "mrr@10",
    "map@100",
    *(f"{kind}@{k}" for kind in ("accuracy", "precision", "recall") for k in CUTS),
)


def query_figures(ranked: Sequence[int] | Ints, relevant: Collection[int]) -> list[float]:
    """The figures of one query, as `NAMES` lists them.

    `ranked` are the numbers of its best documents, at least 100 if there are so many; `relevant`
    those of the documents that answer it.
    """
    if not relevant:
        raise ConfigError("a query without a relevant document cannot be scored; leave it out")
    wanted = set(relevant)
    hits = np.array([int(document) in wanted for document in ranked[:RANKED]], dtype=np.float64)
    found = np.cumsum(hits)
    places = np.arange(1, len(hits) + 1)
    discount = 1.0 / np.log2(np.arange(2, _TEN + 2))
    ideal = discount[: min(len(wanted), _TEN)].sum()
    first = np.flatnonzero(hits[:_TEN])
    return [
        float((hits[:_TEN] * discount[: len(hits)]).sum() / ideal),
        1.0 / (int(first[0]) + 1) if len(first) else 0.0,
        float((hits * found / places).sum() / min(RANKED, len(wanted))),
        *(float(hits[:k].any()) for k in CUTS),
        *(float(hits[:k].sum() / k) for k in CUTS),
        *(float(hits[:k].sum() / len(wanted)) for k in CUTS),
    ]


def _rows(targets: Any, predictions: Any, labels: Sequence[str]) -> Floats:
    check_rows(targets, predictions)
    return np.array(
        [query_figures(ranked, some) for ranked, some in zip(predictions, targets, strict=True)]
    )


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    means = rows.mean(axis=0) if len(rows) else np.full(len(NAMES), math.nan)
    return dict(zip(NAMES, means.tolist(), strict=True))


def _drawn(rows: Floats, labels: Sequence[str]) -> Callable[[Ints], float]:
    first = rows[:, 0]
    return lambda drawn: float(first[drawn].mean())


RETRIEVAL = Metric("ndcg@10", _rows, _figures, _drawn)
"""Q sets of relevant documents, Q rankings of documents -> the figures as means over queries."""
