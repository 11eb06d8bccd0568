"""Pair classification by a similarity: average precision, and the best F1 and accuracy over cuts.

Conventions are those of sentence-transformers' BinaryClassificationEvaluator: a cut lies between
two different scores, its threshold is their middle, and of equally good cuts the one with the
highest threshold is taken. Predicting no pair at all is a cut for accuracy, but not for F1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Bools, Floats, Ints, check_rows, floats, share
from bertsmith.metrics.metric import Metric
from bertsmith.metrics.multilabel import average_precision


@dataclass(frozen=True, slots=True)
class _Cuts:
    """All cuts of pairs in descending order of score: (K,) each."""

    right: Ints  # positives above the cut
    taken: Ints  # pairs above the cut
    threshold: Floats
    positives: int
    pairs: int


def _cuts(labels: Bools, scores: Floats) -> _Cuts:
    order = np.argsort(-scores, kind="stable")
    ordered, marks = scores[order], labels[order]
    ends = np.flatnonzero(np.append(ordered[:-1] > ordered[1:], True))
    below = np.append(ordered[1:], ordered[-1])[ends]
    return _Cuts(
        right=np.cumsum(marks, dtype=np.int64)[ends],
        taken=ends + 1,
        threshold=(ordered[ends] + below) / 2,
        positives=int(marks.sum()),
        pairs=len(marks),
    )


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    wanted, scores = rows[:, 0] > 0, rows[:, 1]
    if wanted.all() or not wanted.any():
        return dict.fromkeys(_NAMES, math.nan)  # of one class nothing can be told apart
    cuts = _cuts(wanted, scores)
    negatives = cuts.pairs - cuts.positives
    above_wrong = cuts.taken - cuts.right
    accuracy = np.append(negatives, cuts.right + negatives - above_wrong) / cuts.pairs
    place = int(accuracy.argmax())
    none = float(np.nextafter(scores.max(), np.inf))
    f1 = share(2 * cuts.right, cuts.taken + cuts.positives)
    best = int(f1.argmax())
    return {
        "ap": float(average_precision(wanted[:, None], scores[:, None])[0]),
        "f1": float(f1[best]),
        "f1_threshold": float(cuts.threshold[best]),
        "precision": float(cuts.right[best] / cuts.taken[best]),
        "recall": float(cuts.right[best] / cuts.positives),
        "accuracy": float(accuracy[place]),
        "accuracy_threshold": float(cuts.threshold[place - 1]) if place else none,
        "mcc": _mcc(int(cuts.right[best]), int(cuts.taken[best]), cuts.positives, cuts.pairs),
    }


_NAMES = (
    "ap",
    "f1",
    "f1_threshold",
    "precision",
    "recall",
    "accuracy",
    "accuracy_threshold",
    "mcc",
)


def _mcc(right: int, taken: int, positives: int, pairs: int) -> float:
    """Matthews correlation of a decision, 0 if it is the same for all pairs."""
    spread = taken * (pairs - taken) * positives * (pairs - positives)
    return (right * pairs - taken * positives) / math.sqrt(spread) if spread else 0.0


def _rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    wanted, given = floats(targets, 1, "targets"), floats(predictions, 1, "scores")
    check_rows(wanted, given)
    return np.column_stack([wanted, given])


def _drawn_precision(rows: Floats, labels: Sequence[str]) -> Callable[[Ints], float]:
    """Average precision of drawn pairs alone; nan where a draw has one class."""

    def figure(drawn: Ints) -> float:
        wanted = rows[drawn, 0] > 0
        if wanted.all() or not wanted.any():
            return math.nan
        return float(average_precision(wanted[:, None], rows[drawn, 1][:, None])[0])

    return figure


PAIRS = Metric("ap", _rows, _figures, _drawn_precision)
"""(N,) 1 or 0, (N,) similarities -> ap, f1, accuracy, their thresholds, and mcc at that of f1."""
