"""Single-label classification: every metric is computed from the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, Ints, check_rows, classes_of, share
from bertsmith.metrics.metric import Metric


@dataclass(frozen=True, slots=True)
class PerClass:
    """Metrics of each class; 0 where a denominator is 0."""

    precision: Floats  # (C,)
    recall: Floats  # (C,)
    f1: Floats  # (C,)
    support: Ints  # (C,) rows whose target is the class


def confusion(targets: ArrayLike, predictions: ArrayLike, classes: int) -> Ints:
    """(N,), (N,) -> (C, C): how often target i was predicted as j."""
    wanted = classes_of(targets, classes, "targets")
    given = classes_of(predictions, classes, "predictions")
    check_rows(wanted, given)
    counts = np.bincount(wanted * classes + given, minlength=classes * classes)
    return counts.astype(np.int64).reshape(classes, classes)


def accuracy(matrix: Ints) -> float:
    """The share of rows on the diagonal."""
    return float(share(np.trace(matrix), matrix.sum()))


def per_class(matrix: Ints) -> PerClass:
    """Precision, recall, F1 and support of each class."""
    right, support, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    return PerClass(
        precision=share(right, predicted),
        recall=share(right, support),
        f1=share(2 * right, support + predicted),
        support=support,
    )


def macro_f1(matrix: Ints) -> float:
    """The mean F1 of the classes that occur as a target or as a prediction, as in scikit-learn."""
    occurs = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
    return float(per_class(matrix).f1[occurs].mean()) if occurs.any() else 0.0


def weighted_f1(matrix: Ints) -> float:
    """The mean F1 of the classes, each weighted by its support."""
    figures = per_class(matrix)
    return float(share(figures.f1 @ figures.support, figures.support.sum()))


def mcc(matrix: Ints) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004), -1 to 1.

    0 where targets or predictions have a single class, as in GLUE's metric for CoLA.
    """
    counts = matrix.astype(np.float64)
    total, support, predicted = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    together = np.trace(counts) * total - support @ predicted
    spread = (total**2 - predicted @ predicted) * (total**2 - support @ support)
    return float(np.clip(share(together, np.sqrt(spread)), -1.0, 1.0))


def _classify_rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    """(N,) class numbers; (N,) class numbers or (N, C) scores -> (N, 2)."""
    given = np.asarray(predictions)
    if given.ndim == 2:
        given = given.argmax(axis=1)
    wanted = classes_of(targets, len(labels), "targets")
    given = classes_of(given, len(labels), "predictions")
    check_rows(wanted, given)
    return np.column_stack([wanted, given]).astype(np.float64)


def _classify_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    matrix = confusion(rows[:, 0], rows[:, 1], len(labels))
    figures = {
        "accuracy": accuracy(matrix),
        "f1_macro": macro_f1(matrix),
        "f1_micro": accuracy(matrix),  # equal, with one label per row
        "f1_weighted": weighted_f1(matrix),
        "mcc": mcc(matrix),
    }
    if len(labels) == 2:
        figures["f1"] = float(per_class(matrix).f1[1])
    return figures


def _choose_rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    """(N,) and (N,) choice indices -> (N, 1): whether they are equal."""
    wanted = classes_of(targets, np.iinfo(np.int64).max, "targets")
    given = classes_of(predictions, np.iinfo(np.int64).max, "predictions")
    check_rows(wanted, given)
    return np.equal(wanted, given).astype(np.float64)[:, None]


CLASSIFICATION = Metric("accuracy", _classify_rows, _classify_figures)
CHOICES = Metric("accuracy", _choose_rows, lambda rows, labels: {"accuracy": float(rows.mean())})
