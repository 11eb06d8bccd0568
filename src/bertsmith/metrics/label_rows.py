"""Metrics of labels, numbers and choices: the part of each row, and the figures of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.errors import ConfigError
from bertsmith.metrics import classification, correlation, multilabel
from bertsmith.metrics.arrays import Floats, Ints, check_rows, classes_of, floats, marks
from bertsmith.metrics.metric import Metric


def classify_rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    """(N,) class numbers; (N,) class numbers or (N, C) scores -> (N, 2)."""
    given = np.asarray(predictions)
    if given.ndim == 2:
        given = given.argmax(axis=1)
    wanted = classes_of(targets, len(labels), "targets")
    given = classes_of(given, len(labels), "predictions")
    check_rows(wanted, given)
    return np.column_stack([wanted, given]).astype(np.float64)


def classify_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    """Accuracy, F1 by each average, Matthews' correlation; F1 of the second of two labels."""
    matrix = classification.confusion(rows[:, 0], rows[:, 1], len(labels))
    figures = {
        "accuracy": classification.accuracy(matrix),
        "f1_macro": classification.macro_f1(matrix),
        "f1_micro": classification.micro_f1(matrix),
        "f1_weighted": classification.weighted_f1(matrix),
        "mcc": classification.mcc(matrix),
    }
    if len(labels) == 2:
        figures["f1"] = float(classification.per_class(matrix).f1[1])
    return figures


def multilabel_rows(
    targets: ArrayLike, predictions: multilabel.Decisions | ArrayLike, labels: Sequence[str]
) -> Floats:
    """(N, C) yes or no; decisions, probabilities or yes or no -> (N, 3 C)."""
    wanted = marks(targets, "targets")
    if not isinstance(predictions, multilabel.Decisions):
        given = np.asarray(predictions)
        if given.dtype == np.bool_:
            nothing = np.full(given.shape, np.nan)
            predictions = multilabel.Decisions(nothing, marks(given, "predictions"))
        else:
            predictions = multilabel.decide(given)
    check_rows(wanted, predictions)
    if not wanted.shape == predictions.chosen.shape == (len(wanted), len(labels)):
        raise ConfigError(
            f"{len(labels)} labels, targets of shape {wanted.shape} and predictions of shape "
            f"{predictions.chosen.shape} do not belong together"
        )
    return np.hstack([wanted, predictions.chosen, predictions.probabilities])


def multilabel_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    """F1 over all decisions and over labels, exact rows; average precision if it can be known."""
    wanted, given, probabilities = np.split(rows, 3, axis=1)
    counts = multilabel.label_counts(wanted, given)
    figures = {
        "f1_micro": counts.micro_f1,
        "f1_macro": counts.macro_f1,
        "subset_accuracy": multilabel.subset_accuracy(wanted, given),
    }
    if not np.isnan(probabilities).any() and wanted.any():
        precisions = multilabel.average_precision(wanted, probabilities)
        figures["average_precision"] = float(np.nanmean(precisions))
    return figures


def regress_rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    """(N,) and (N,) numbers -> (N, 2)."""
    wanted, given = floats(targets, 1, "targets"), floats(predictions, 1, "predictions")
    check_rows(wanted, given)
    return np.column_stack([wanted, given])


def regress_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    """Correlation of ranks and of values (nan where there is none), and the squared error."""
    return {
        "spearman": correlation.spearman(rows[:, 0], rows[:, 1]),
        "pearson": correlation.pearson(rows[:, 0], rows[:, 1]),
        "mse": correlation.mean_squared_error(rows[:, 0], rows[:, 1]),
    }


def choose_rows(targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]) -> Floats:
    """(N,) and (N,) numbers of choices -> (N, 1): whether they agree."""
    wanted = classes_of(targets, np.iinfo(np.int64).max, "targets")
    given = classes_of(predictions, np.iinfo(np.int64).max, "predictions")
    check_rows(wanted, given)
    return np.equal(wanted, given).astype(np.float64)[:, None]


def choose_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    """The share of rows with the right choice."""
    return {"accuracy": float(rows.mean())}


def _drawn_micro_f1(rows: Floats, labels: Sequence[str]) -> Callable[[Ints], float]:
    """Micro F1 of drawn rows as two sums, without counts per label."""
    wanted, given, _ = np.split(rows, 3, axis=1)
    both = (wanted * given).sum(axis=1)
    either = wanted.sum(axis=1) + given.sum(axis=1)
    return lambda drawn: float(2 * both[drawn].sum() / max(1, either[drawn].sum()))


CLASSIFICATION = Metric("accuracy", classify_rows, classify_figures)
MULTILABEL = Metric("f1_micro", multilabel_rows, multilabel_figures, _drawn_micro_f1)
REGRESSION = Metric("spearman", regress_rows, regress_figures)
CHOICES = Metric("accuracy", choose_rows, choose_figures)
