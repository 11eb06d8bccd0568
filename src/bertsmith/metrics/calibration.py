"""Calibration of probabilities: reliability bins, calibration error, Brier score, NLL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, Ints, check_rows, classes_of, floats

BINS = 15
_LEAST = float(np.finfo(np.float64).tiny)  # a probability of 0 costs 708, not infinity


@dataclass(frozen=True, slots=True)
class Reliability:
    """Rows grouped by confidence, for a plot: bins (K,), empty ones left out."""

    low: Floats
    high: Floats
    confidence: Floats  # mean of the bin's rows
    accuracy: Floats  # share of them that is right
    count: Ints

    @property
    def error(self) -> float:
        """Expected calibration error: the mean gap of confidence and accuracy, weighted by rows."""
        return float(np.abs(self.confidence - self.accuracy) @ self.count / self.count.sum())


def reliability(
    probabilities: ArrayLike, targets: ArrayLike, *, bins: int = BINS, adaptive: bool = False
) -> Reliability:
    """(N, C), (N,) -> bins of the top probability.

    Bins are of equal width over 0 to 1, each without its lower and with its upper border (Guo et
    al. 2017, arXiv:1706.04599); adaptive ones hold equally many rows instead.
    """
    given, wanted = _checked(probabilities, targets)
    confidence = given.max(axis=1)
    right = given.argmax(axis=1) == wanted
    if adaptive:
        group = np.empty(len(given), dtype=np.int64)
        group[np.argsort(confidence, kind="stable")] = np.arange(len(given)) * bins // len(given)
    else:
        borders = np.linspace(0.0, 1.0, bins + 1)
        group = np.searchsorted(borders[1:-1], confidence, side="left")
    count = np.bincount(group, minlength=bins)
    kept = count > 0
    if adaptive:
        ends = np.cumsum(count[kept])
        ordered = np.sort(confidence)
        low, high = ordered[ends - count[kept]], ordered[ends - 1]
    else:
        low, high = borders[:-1][kept], borders[1:][kept]
    return Reliability(
        low=low,
        high=high,
        confidence=np.bincount(group, confidence, minlength=bins)[kept] / count[kept],
        accuracy=np.bincount(group, right, minlength=bins)[kept] / count[kept],
        count=count[kept],
    )


def brier(probabilities: ArrayLike, targets: ArrayLike) -> float:
    """(N, C), (N,) -> squared distance to the truth over all classes (Brier 1950), 0 to 2."""
    given, wanted = _checked(probabilities, targets)
    away = given.copy()
    away[np.arange(len(given)), wanted] -= 1.0
    return float((away**2).sum(axis=1).mean())


def negative_log_likelihood(probabilities: ArrayLike, targets: ArrayLike) -> float:
    """(N, C), (N,) -> the mean over rows, in nats."""
    given, wanted = _checked(probabilities, targets)
    return float(-np.log(np.maximum(given[np.arange(len(given)), wanted], _LEAST)).mean())


def _checked(scores: ArrayLike, targets: ArrayLike) -> tuple[Floats, Ints]:
    given = floats(scores, 2, "predictions")
    wanted = classes_of(targets, given.shape[1], "targets")
    check_rows(wanted, given)
    return given, wanted
