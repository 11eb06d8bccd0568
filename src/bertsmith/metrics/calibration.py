"""Whether a model's probabilities can be believed: calibration error, Brier score, temperature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, Ints, check_rows, classes_of, floats

BINS = 15
COLDEST, HOTTEST = 0.05, 20.0
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
        """The mean distance of confidence and accuracy, each bin weighted by its rows."""
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


def expected_calibration_error(
    probabilities: ArrayLike, targets: ArrayLike, *, bins: int = BINS, adaptive: bool = False
) -> float:
    """(N, C), (N,) -> how far confidence and accuracy lie apart, 0 to 1."""
    return reliability(probabilities, targets, bins=bins, adaptive=adaptive).error


def brier(probabilities: ArrayLike, targets: ArrayLike) -> float:
    """(N, C), (N,) -> squared distance to the truth over all classes (Brier 1950), 0 to 2."""
    given, wanted = _checked(probabilities, targets)
    away = given.copy()
    away[np.arange(len(given)), wanted] -= 1.0
    return float((away**2).sum(axis=1).mean())


def negative_log_likelihood(probabilities: ArrayLike, targets: ArrayLike) -> float:
    """(N, C), (N,) -> the mean surprise about the true class, in nats."""
    given, wanted = _checked(probabilities, targets)
    return float(-np.log(np.maximum(given[np.arange(len(given)), wanted], _LEAST)).mean())


def softmax(logits: ArrayLike, temperature: float = 1.0) -> Floats:
    """(N, C) -> (N, C) probabilities at a temperature."""
    raised = floats(logits, 2, "logits") / temperature
    raised = np.exp(raised - raised.max(axis=1, keepdims=True))
    result: Floats = raised / raised.sum(axis=1, keepdims=True)
    return result


def tune_temperature(logits: ArrayLike, targets: ArrayLike) -> float:
    """(N, C), (N,) -> the temperature with the least negative log likelihood, 0.05 to 20.

    The loss is convex in 1 / temperature, and its slope is the mean of the logits as expected less
    the logit of the true class: halving the interval on the slope's sign finds the only minimum.
    """
    given, wanted = _checked(logits, targets)
    true = given[np.arange(len(given)), wanted]
    low, high = 1 / HOTTEST, 1 / COLDEST
    if not np.ptp(given, axis=1).any():
        return 1.0  # all logits of each row are equal: no temperature changes anything
    for _ in range(60):
        middle = (low + high) / 2
        slope = ((softmax(given, 1 / middle) * given).sum(axis=1) - true).mean()
        low, high = (low, middle) if slope > 0 else (middle, high)
    return 2 / (low + high)


def _checked(scores: ArrayLike, targets: ArrayLike) -> tuple[Floats, Ints]:
    given = floats(scores, 2, "predictions")
    wanted = classes_of(targets, given.shape[1], "targets")
    check_rows(wanted, given)
    return given, wanted
