"""How far the main figure would move with other rows of the same kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.evaluation.proof.rows import Rows, right_rows
from bertsmith.metrics import METRICS
from bertsmith.metrics.arrays import Bools, Ints
from bertsmith.metrics.significance import Figure, Interval, bootstrap

DRAWS = 1_000
FEWEST_DRAWS = 100
ROWS_DRAWN = 5_000_000  # in all draws; more rows get fewer draws, as their figure moves less


def main_interval(rows: Rows) -> Interval:
    """The 95 % interval of the main figure, by drawing rows again."""
    draws = max(FEWEST_DRAWS, min(DRAWS, ROWS_DRAWN // len(rows)))
    return bootstrap(_main_figure(rows), len(rows), samples=draws)


def _main_figure(rows: Rows) -> Figure:
    """The main figure of drawn rows; figures that are sums of rows need no table of classes."""
    metric = METRICS[rows.task]
    right = right_rows(rows)
    if metric.main == "accuracy" and right is not None:
        return lambda drawn: float(right[drawn].mean())
    if rows.task == "multilabel":
        both = (rows.truth & rows.said.chosen).sum(axis=1)
        either = rows.truth.sum(axis=1) + rows.said.chosen.sum(axis=1)
        return lambda drawn: float(2 * both[drawn].sum() / max(1, either[drawn].sum()))

    def figure(drawn: Ints) -> float:
        return metric.figures(rows.table[drawn], rows.labels)[metric.main]

    return figure


MOST_POINTS = 800
BINS = 21


def numbers(rows: Rows) -> dict[str, Any] | None:
    """Truth and answer of up to 800 rows; mean, spread and bins of answer less truth."""
    if rows.task != "regress":
        return None
    truth, said = np.asarray(rows.truth, float), np.asarray(rows.said, float)
    away = said - truth
    step = -(-len(truth) // MOST_POINTS)
    reach = float(np.abs(away).max()) or 1.0
    counts, borders = np.histogram(away, bins=BINS, range=(-reach, reach))
    return {
        "points": np.column_stack([truth, said])[::step].round(6),
        "points_of": len(truth),
        "bias": away.mean(),
        "spread": away.std(),
        "mean_absolute_error": np.abs(away).mean(),
        "p90_absolute_error": np.quantile(np.abs(away), 0.9),
        "bins": [
            {"low": low, "high": high, "count": count}
            for low, high, count in zip(borders[:-1], borders[1:], counts, strict=True)
        ],
    }


def truncation(rows: Rows) -> dict[str, Any]:
    """Rows cut, tokens lost, and the figures of both kinds of rows, None for a kind without one."""
    cut = np.array([one.cut for one in rows.predictions], dtype=np.int64)
    lost: Bools = cut > 0
    return {
        "rows_cut": int(lost.sum()),
        "share": float(lost.mean()),
        "tokens_cut": int(cut.sum()),
        "most_tokens_cut": int(cut.max(initial=0)),
        "cut": _figures(rows, lost),
        "whole": _figures(rows, ~lost),
    }


def _figures(rows: Rows, chosen: Bools) -> dict[str, float] | None:
    if not chosen.any():
        return None
    return METRICS[rows.task].figures(rows.table[chosen], rows.labels)
