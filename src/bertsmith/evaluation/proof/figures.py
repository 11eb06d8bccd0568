"""The interval of the main figure, and what truncation cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.metrics.arrays import Bools, Ints
from bertsmith.metrics.significance import Figure, Interval, bootstrap
from bertsmith.tasks.task import ScoredRows

DRAWS = 1_000
FEWEST_DRAWS = 100
ROWS_DRAWN = 5_000_000  # in all draws; with more rows there are fewer draws


def main_interval(rows: ScoredRows) -> Interval:
    """The 95 % bootstrap interval of the main figure."""
    draws = max(FEWEST_DRAWS, min(DRAWS, ROWS_DRAWN // len(rows)))
    return bootstrap(_main_figure(rows), len(rows), samples=draws)


def _main_figure(rows: ScoredRows) -> Figure:
    """The main figure of drawn rows; figures that are sums over rows need no counts per class."""
    kind = rows.task.kind
    metric, right = kind.metric, kind.right(rows)
    if metric.drawn is not None:
        return metric.drawn(rows.table, rows.labels)
    if metric.main == "accuracy" and right is not None:
        return lambda drawn: float(right[drawn].mean())

    def figure(drawn: Ints) -> float:
        return metric.figures(rows.table[drawn], rows.labels)[metric.main]

    return figure


def truncation(rows: ScoredRows) -> dict[str, Any]:
    """Truncated rows and tokens, and the figures of truncated and whole rows."""
    cut = np.array([one.cut for one in rows.predictions], dtype=np.int64)
    lost: Bools = cut > 0
    return {
        "rows_cut": int(lost.sum()),
        "share": float(lost.mean()),
        "tokens_cut": int(cut.sum()),
        "most_tokens_cut": int(cut.max(initial=0)),
        "cut": rows.figures(lost) if lost.any() else None,
        "whole": rows.figures(~lost) if not lost.all() else None,
    }
