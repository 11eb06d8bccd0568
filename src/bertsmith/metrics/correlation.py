"""Regression: Pearson and Spearman correlation, squared error, residuals.

A correlation is nan where it is undefined: fewer than two rows, constant targets or predictions, or
values that are not finite. `metric.better` treats nan as worse than any number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, check_rows, floats
from bertsmith.metrics.metric import Metric

MOST_POINTS = 800
BINS = 21


def pearson(targets: ArrayLike, predictions: ArrayLike) -> float:
    """(N,), (N,) -> the linear correlation, -1 to 1, or nan."""
    return _correlation(*_both(targets, predictions))


def spearman(targets: ArrayLike, predictions: ArrayLike) -> float:
    """(N,), (N,) -> the correlation of the ranks, ties sharing their mean rank; or nan."""
    wanted, given = _both(targets, predictions)
    if not (np.isfinite(wanted).all() and np.isfinite(given).all()):
        return math.nan
    return _correlation(ranks(wanted), ranks(given))


def mean_squared_error(targets: ArrayLike, predictions: ArrayLike) -> float:
    """(N,), (N,) -> the mean of the squared differences."""
    wanted, given = _both(targets, predictions)
    return float(((wanted - given) ** 2).mean())


def ranks(values: Floats) -> Floats:
    """(N,) -> (N,): places from 1 up; equal values share the mean of their places."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle: Floats = last - (counts - 1) / 2
    return middle[group]


def _both(targets: ArrayLike, predictions: ArrayLike) -> tuple[Floats, Floats]:
    wanted, given = floats(targets, 1, "targets"), floats(predictions, 1, "predictions")
    check_rows(wanted, given)
    return wanted, given


def _correlation(first: Floats, second: Floats) -> float:
    # Tested on the values themselves: after subtracting a rounded mean, a spread of 1e-17 is left.
    if not all(np.isfinite(side).all() and side.min() < side.max() for side in (first, second)):
        return math.nan
    unit = [_unit(first), _unit(second)]
    return float(np.clip(unit[0] @ unit[1], -1.0, 1.0))


def _unit(values: Floats) -> Floats:
    """Centered, of length 1; scaled first, so that squares neither overflow nor vanish."""
    centered = values - values.mean()
    centered = centered / np.abs(centered).max()
    result: Floats = centered / np.sqrt(centered @ centered)
    return result


def _rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    return np.column_stack(_both(targets, predictions))


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    return {
        "spearman": spearman(rows[:, 0], rows[:, 1]),
        "pearson": pearson(rows[:, 0], rows[:, 1]),
        "mse": mean_squared_error(rows[:, 0], rows[:, 1]),
    }


REGRESSION = Metric("spearman", _rows, _figures)


def residual_report(targets: ArrayLike, predictions: ArrayLike) -> dict[str, Any]:
    """Up to 800 (target, prediction) points; bias, spread, absolute error and bins of residuals."""
    truth, given = np.asarray(targets, float), np.asarray(predictions, float)
    away = given - truth
    step = -(-len(truth) // MOST_POINTS)
    reach = float(np.abs(away).max()) or 1.0
    counts, borders = np.histogram(away, bins=BINS, range=(-reach, reach))
    return {
        "points": np.column_stack([truth, given])[::step].round(6),
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
