"""Multi-label classification: F1, average precision and threshold tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Bools, Floats, Ints, check_rows, floats, marks, share
from bertsmith.metrics.metric import Metric

NEUTRAL = 0.5


@dataclass(frozen=True, slots=True)
class Decisions:
    """Label probabilities and predicted labels, (N, C) both."""

    probabilities: Floats
    chosen: Bools

    def __len__(self) -> int:
        return len(self.chosen)


@dataclass(frozen=True, slots=True)
class MultilabelCounts:
    """True positives, predictions and targets of each label, (C,) each."""

    right: Ints
    given: Ints
    wanted: Ints

    @property
    def f1(self) -> Floats:
        """(C,) F1 of each label; 0 for one that never occurs."""
        return share(2 * self.right, self.given + self.wanted)

    @property
    def macro_f1(self) -> float:
        """The mean over all labels."""
        return float(self.f1.mean())

    @property
    def micro_f1(self) -> float:
        """F1 of all decisions pooled."""
        return float(share(2 * self.right.sum(), self.given.sum() + self.wanted.sum()))


def decide(probabilities: ArrayLike, thresholds: ArrayLike = NEUTRAL) -> Decisions:
    """(N, C) probabilities; a label is predicted from its threshold on."""
    given = floats(probabilities, 2, "probabilities")
    return Decisions(given, given >= np.asarray(thresholds, dtype=np.float64))


def label_counts(targets: ArrayLike, chosen: ArrayLike) -> MultilabelCounts:
    """(N, C), (N, C) -> the counts of each label."""
    wanted, given = marks(targets, "targets"), marks(chosen, "predictions")
    check_rows(wanted, given)
    return MultilabelCounts((wanted & given).sum(0), given.sum(0), wanted.sum(0))


def subset_accuracy(targets: ArrayLike, chosen: ArrayLike) -> float:
    """The share of rows whose label set is exactly right."""
    wanted, given = marks(targets, "targets"), marks(chosen, "predictions")
    check_rows(wanted, given)
    return float((wanted == given).all(axis=1).mean())


def average_precision(targets: ArrayLike, probabilities: ArrayLike) -> Floats:
    """(N, C), (N, C) -> (C,): precision averaged over the steps of recall, ties taken together.

    nan for a label that no row has.
    """
    wanted, given = marks(targets, "targets"), floats(probabilities, 2, "probabilities")
    check_rows(wanted, given)
    _, right, ends = _cuts(given, wanted)
    taken = np.arange(1, len(given) + 1)[:, None]
    # Recall grows only where a tie ends: each end's step is its count less the end's before.
    at_ends = np.where(ends, right, 0)
    before = np.zeros_like(at_ends)
    before[1:] = np.maximum.accumulate(at_ends, axis=0)[:-1]
    steps = np.where(ends, (right - before) * (right / taken), 0.0).sum(axis=0)
    total = wanted.sum(axis=0)
    result: Floats = np.where(total > 0, share(steps, total), np.nan)
    return result


def label_report(
    targets: ArrayLike, given: Decisions, labels: Sequence[str], thresholds: Sequence[float]
) -> list[dict[str, Any]]:
    """Precision, recall, F1, support, predictions, average precision and threshold per label."""
    counts = label_counts(targets, given.chosen)
    precision, recall = share(counts.right, counts.given), share(counts.right, counts.wanted)
    average = average_precision(targets, given.probabilities)
    return [
        {
            "label": name,
            "precision": precision[n],
            "recall": recall[n],
            "f1": counts.f1[n],
            "support": counts.wanted[n],
            "predicted": counts.given[n],
            "average_precision": average[n],
            "threshold": thresholds[n],
        }
        for n, name in enumerate(labels)
    ]


def tune_thresholds(probabilities: ArrayLike, targets: ArrayLike) -> Floats:
    """(N, C), (N, C) -> (C,): for each label the threshold with its best F1 on these rows.

    Every cut between two different probabilities is tried. A cut leaves room for many thresholds:
    0.5 if it has room there, else the middle of the gap, which is safest for new rows. Of equally
    good cuts the one nearest 0.5 wins; a label that no row has keeps 0.5.
    """
    given, wanted = floats(probabilities, 2, "probabilities"), marks(targets, "targets")
    check_rows(wanted, given)
    ordered, right, ends = _cuts(given, wanted)
    taken = np.arange(1, len(given) + 1)[:, None]
    total = wanted.sum(axis=0)
    f1 = np.where(ends, share(2 * right, taken + total), -1.0)  # (N, C)
    high = ordered
    low = np.vstack([ordered[1:], np.minimum(ordered[-1:], 0.0)])
    middle = (high + low) / 2
    # Models compare in fp32: a middle that rounds down onto the row left out would take it in.
    middle = np.where(middle.astype(np.float32) > low.astype(np.float32), middle, high)
    threshold = np.where((low < NEUTRAL) & (high >= NEUTRAL), NEUTRAL, middle)
    best = f1 >= f1.max(axis=0)
    row = np.where(best, np.abs(threshold - NEUTRAL), np.inf).argmin(axis=0)
    chosen: Floats = threshold[row, np.arange(given.shape[1])]
    return np.where(total > 0, chosen, NEUTRAL)


def _cuts(probabilities: Floats, targets: Bools) -> tuple[Floats, Ints, Bools]:
    """Per label in descending order: probability, true positives so far, where ties end."""
    order = np.argsort(-probabilities, axis=0, kind="stable")
    ordered = np.take_along_axis(probabilities, order, axis=0)
    right = np.cumsum(np.take_along_axis(targets, order, axis=0), axis=0, dtype=np.int64)
    ends = np.ones(ordered.shape, dtype=np.bool_)
    ends[:-1] = ordered[:-1] > ordered[1:]
    return ordered, right, ends


def _rows(targets: ArrayLike, predictions: Decisions | ArrayLike, labels: Sequence[str]) -> Floats:
    """(N, C) booleans; decisions, probabilities or booleans -> (N, 3 C)."""
    wanted = marks(targets, "targets")
    if not isinstance(predictions, Decisions):
        given = np.asarray(predictions)
        if given.dtype == np.bool_:
            predictions = Decisions(np.full(given.shape, np.nan), marks(given, "predictions"))
        else:
            predictions = decide(given)
    check_rows(wanted, predictions)
    if not wanted.shape == predictions.chosen.shape == (len(wanted), len(labels)):
        raise ConfigError(
            f"{len(labels)} labels, targets of shape {wanted.shape} and predictions of shape "
            f"{predictions.chosen.shape} do not belong together"
        )
    return np.hstack([wanted, predictions.chosen, predictions.probabilities])


def _figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    wanted, given, probabilities = np.split(rows, 3, axis=1)
    counts = label_counts(wanted, given)
    figures = {
        "f1_micro": counts.micro_f1,
        "f1_macro": counts.macro_f1,
        "subset_accuracy": subset_accuracy(wanted, given),
    }
    if not np.isnan(probabilities).any() and wanted.any():
        figures["average_precision"] = float(np.nanmean(average_precision(wanted, probabilities)))
    return figures


def _drawn_micro_f1(rows: Floats, labels: Sequence[str]) -> Callable[[Ints], float]:
    """Micro F1 of drawn rows as two sums, without counts per label."""
    wanted, given, _ = np.split(rows, 3, axis=1)
    both = (wanted * given).sum(axis=1)
    either = wanted.sum(axis=1) + given.sum(axis=1)
    return lambda drawn: float(2 * both[drawn].sum() / max(1, either[drawn].sum()))


MULTILABEL = Metric("f1_micro", _rows, _figures, _drawn_micro_f1)
