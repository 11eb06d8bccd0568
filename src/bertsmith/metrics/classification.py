"""One label a text: everything is read off the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.metrics.arrays import Floats, Ints, check_rows, classes_of, share


@dataclass(frozen=True, slots=True)
class PerClass:
    """A row of figures for each class; 0 where a class has nothing to divide by."""

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
    """The mean F1 of the classes that occur, as a target or as a prediction.

    A class of the label set that neither side knows says nothing about the model; scikit-learn
    leaves it out as well.
    """
    occurs = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
    return float(per_class(matrix).f1[occurs].mean()) if occurs.any() else 0.0


def weighted_f1(matrix: Ints) -> float:
    """The mean F1 of the classes, each weighted by its support."""
    figures = per_class(matrix)
    return float(share(figures.f1 @ figures.support, figures.support.sum()))


def micro_f1(matrix: Ints) -> float:
    """F1 of all decisions taken together; with one label a row this is the accuracy."""
    return accuracy(matrix)


def mcc(matrix: Ints) -> float:
    """Matthews' correlation for any number of classes (Gorodkin 2004), -1 to 1.

    0 where one side has a single class: there is no correlation to measure, and GLUE's own
    figure for CoLA is 0 there, too.
    """
    counts = matrix.astype(np.float64)
    total, support, predicted = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    together = np.trace(counts) * total - support @ predicted
    spread = (total**2 - predicted @ predicted) * (total**2 - support @ support)
    return float(np.clip(share(together, np.sqrt(spread)), -1.0, 1.0))
