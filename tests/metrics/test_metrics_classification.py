"""Figures of one label a text, against scikit-learn and by hand."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as oracle

from bertsmith.errors import ConfigError
from bertsmith.metrics.classification import (
    accuracy,
    confusion,
    macro_f1,
    mcc,
    per_class,
    weighted_f1,
)

CLASSES = 4
SIDES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=60)


@settings(max_examples=50, deadline=None)
@given(SIDES)
def test_every_figure_is_that_of_scikit_learn(rows) -> None:
    targets, predictions = np.array(rows).T
    matrix = confusion(targets, predictions, CLASSES)
    assert (matrix == oracle.confusion_matrix(targets, predictions, labels=range(CLASSES))).all()
    by = {"y_true": targets, "y_pred": predictions, "zero_division": 0}
    assert accuracy(matrix) == pytest.approx(oracle.accuracy_score(targets, predictions))
    assert macro_f1(matrix) == pytest.approx(oracle.f1_score(average="macro", **by))
    assert accuracy(matrix) == pytest.approx(oracle.f1_score(average="micro", **by))
    assert weighted_f1(matrix) == pytest.approx(oracle.f1_score(average="weighted", **by))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of a single label
        expected_mcc = oracle.matthews_corrcoef(targets, predictions)
    assert mcc(matrix) == pytest.approx(expected_mcc, abs=1e-12)
    figures = per_class(matrix)
    expected = oracle.precision_recall_fscore_support(labels=range(CLASSES), **by)
    found = (figures.precision, figures.recall, figures.f1, figures.support)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs)


@settings(max_examples=80, deadline=None)
@given(SIDES, st.permutations(range(CLASSES)), st.randoms())
def test_neither_the_order_of_rows_nor_of_classes_matters(rows, renamed, random) -> None:
    targets, predictions = np.array(rows).T
    random.shuffle(rows)
    moved, said = np.array(renamed)[np.array(rows).T]
    first, second = confusion(targets, predictions, CLASSES), confusion(moved, said, CLASSES)
    for figure in (accuracy, macro_f1, weighted_f1, mcc):
        assert figure(first) == pytest.approx(figure(second), abs=1e-12)
        assert -1 <= figure(first) <= 1


@given(st.lists(st.integers(0, 3), min_size=2, max_size=30).filter(lambda x: len(set(x)) > 1))
def test_perfect_predictions_score_one(targets) -> None:
    matrix = confusion(targets, targets, CLASSES)
    for figure in (accuracy, macro_f1, weighted_f1, mcc):
        assert figure(matrix) == pytest.approx(1.0)


def test_three_classes_by_hand() -> None:
    matrix = confusion([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2], 3)
    assert matrix.tolist() == [[2, 1, 0], [0, 1, 1], [0, 0, 1]]
    assert accuracy(matrix) == pytest.approx(4 / 6)
    figures = per_class(matrix)
    assert figures.precision.tolist() == [1.0, 0.5, 0.5]
    assert figures.f1.tolist() == pytest.approx([0.8, 0.5, 2 / 3])
    assert macro_f1(matrix) == pytest.approx((0.8 + 0.5 + 2 / 3) / 3)


def test_one_class_on_a_side_has_no_correlation() -> None:
    assert mcc(confusion([0, 0, 1], [0, 0, 0], 2)) == 0.0
    assert mcc(confusion([0, 0], [0, 0], 2)) == 0.0


def test_a_large_matrix_does_not_overflow() -> None:
    matrix = np.array([[10**9, 10**8], [10**8, 10**9]])
    assert mcc(matrix) == pytest.approx(9 / 11)


@pytest.mark.parametrize(
    ("targets", "predictions", "said"),
    [
        ([0, 1], [0], "2 targets, but 1 predictions"),
        ([], [], "no rows to score"),
        ([0, 3], [0, 0], "targets, row 1: class 3 is none of the 3"),
        ([0, 1], [0, -1], "predictions, row 1: class -1"),
        ([0, 1], [0.5, 1], "whole class number"),
        ([0, 1], [[0, 1], [1, 0]], "whole class number"),
    ],
)
def test_wrong_input_is_named(targets, predictions, said) -> None:
    with pytest.raises(ConfigError, match=said):
        confusion(targets, predictions, 3)
