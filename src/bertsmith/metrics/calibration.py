"""Calibration of probabilities: reliability bins, calibration error, Brier score, NLL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Bools, Floats, Ints, check_rows, classes_of, floats

BINS = 15
_LEAST = float(np.finfo(np.float64).tiny)  # a probability of 0 costs 708, not infinity


@dataclass(frozen=True, slots=True)
class Reliability:
    """Rows grouped by confidence: bins (K,), empty ones left out."""

    low: Floats
    high: Floats
    confidence: Floats  # mean of the bin's rows
    accuracy: Floats
    count: Ints

    @property
    def error(self) -> float:
        """Expected calibration error: the mean gap of confidence and accuracy, weighted by rows."""
        return float(np.abs(self.confidence - self.accuracy) @ self.count / self.count.sum())


def reliability(confidence: Floats, right: Bools, *, bins: int = BINS) -> Reliability:
    """(N,), (N,) -> bins of equal width over 0 to 1, each without its lower border.

    As in Guo et al. 2017, arXiv:1706.04599.
    """
    check_rows(confidence, right)
    borders = np.linspace(0.0, 1.0, bins + 1)
    group = np.searchsorted(borders[1:-1], confidence, side="left")
    count = np.bincount(group, minlength=bins)
    used = count > 0
    return Reliability(
        low=borders[:-1][used],
        high=borders[1:][used],
        confidence=np.bincount(group, confidence, minlength=bins)[used] / count[used],
        accuracy=np.bincount(group, right, minlength=bins)[used] / count[used],
        count=count[used],
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
