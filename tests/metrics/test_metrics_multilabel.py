"""Figures and thresholds of many labels, against scikit-learn and a search by loops."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics as oracle

from bertsmith.errors import ConfigError
from bertsmith.metrics.multilabel import (
    average_precision,
    decide,
    label_counts,
    subset_accuracy,
    tune_thresholds,
)

SHAPES = st.tuples(st.integers(1, 25), st.integers(1, 4))
# Few different values, so that ties are the rule.
COARSE = st.sampled_from([0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0])


@st.composite
def tables(draw):
    shape = draw(SHAPES)
    values = draw(st.sampled_from([COARSE, st.floats(0, 1, width=32)]))
    return draw(arrays(np.bool_, shape)), draw(arrays(np.float64, shape, elements=values))


@settings(max_examples=60, deadline=None)
@given(tables())
def test_every_figure_is_that_of_scikit_learn(table) -> None:
    targets, probabilities = table
    chosen = decide(probabilities).chosen
    counts = label_counts(targets, chosen)
    # A further empty column keeps scikit-learn from reading one column as two classes.
    empty = np.zeros((len(targets), 1), dtype=bool)
    wide = np.hstack([targets, empty]), np.hstack([chosen, empty])
    each = oracle.f1_score(*wide, average=None, zero_division=0)
    np.testing.assert_allclose(counts.f1, each[:-1])
    assert counts.macro_f1 == pytest.approx(each[:-1].mean())
    assert counts.micro_f1 == pytest.approx(
        oracle.f1_score(*wide, average="micro", zero_division=0)
    )
    assert subset_accuracy(targets, chosen) == pytest.approx(oracle.accuracy_score(targets, chosen))
    found = average_precision(targets, probabilities)
    for label in range(targets.shape[1]):
        if not targets[:, label].any():
            assert np.isnan(found[label])
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = oracle.average_precision_score(targets[:, label], probabilities[:, label])
        assert found[label] == pytest.approx(expected)


def searched(probabilities, targets) -> float:
    """One label by loops: the best cut, of equally good ones the one nearest a half."""
    values = sorted({0.0, *probabilities})
    cuts = []
    for low, high in zip([min(values[0], 0.0), *values], values, strict=False):
        if high not in probabilities:
            continue
        chosen = probabilities >= high
        f1 = 2 * (chosen & targets).sum() / (chosen.sum() + targets.sum())
        threshold = 0.5 if low < 0.5 <= high else (low + high) / 2
        cuts.append((-f1, abs(threshold - 0.5), threshold))
    return min(cuts)[2]


@settings(max_examples=60, deadline=None)
@given(tables())
def test_thresholds_are_those_of_a_search_over_every_cut(table) -> None:
    targets, probabilities = table
    probabilities = np.round(probabilities, 3)
    found = tune_thresholds(probabilities, targets)
    for label, threshold in enumerate(found):
        if not targets[:, label].any():
            assert threshold == 0.5
        else:
            expected = searched(probabilities[:, label], targets[:, label])
            assert threshold == pytest.approx(expected, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(tables())
def test_no_other_threshold_is_better(table) -> None:
    targets, probabilities = table
    thresholds = tune_thresholds(probabilities, targets)
    tuned = label_counts(targets, decide(probabilities, thresholds).chosen).f1
    for other in np.unique(np.concatenate([probabilities.ravel(), [0.0, 0.5, 1.0, 1.1]])):
        f1 = label_counts(targets, decide(probabilities, other).chosen).f1
        assert (f1 <= tuned).all()
        if other == 0.5:
            assert (thresholds[f1 == tuned] == 0.5).all()


@settings(max_examples=60, deadline=None)
@given(tables(), st.randoms())
def test_the_order_of_rows_and_fp32_change_nothing(table, random) -> None:
    targets, probabilities = table
    probabilities = probabilities.astype(np.float32)
    order = list(range(len(targets)))
    random.shuffle(order)
    thresholds = tune_thresholds(probabilities, targets)
    assert (tune_thresholds(probabilities[order], targets[order]) == thresholds).all()
    fine = decide(probabilities, thresholds).chosen
    coarse = probabilities >= thresholds.astype(np.float32)
    assert (fine == coarse).all()


def test_thresholds_by_hand() -> None:
    probabilities = np.array([[0.9, 0.3, 0.2], [0.8, 0.2, 0.6], [0.7, 0.1, 0.7], [0.1, 0.05, 0.8]])
    targets = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]])
    # First: only the surest row is right: the middle of 0.9 and 0.8. Second: the two first rows,
    # the middle of 0.2 and 0.1. Third: no row has the label.
    assert tune_thresholds(probabilities, targets) == pytest.approx([0.85, 0.15, 0.5])


def test_a_threshold_between_neighbors_in_fp32_still_parts_them() -> None:
    high = np.float32(0.75)
    # The middle of the two rounds to the even one: that is the lower here, the upper there.
    for low in (np.nextafter(high, np.float32(0)), high):
        pair = np.array([[low], [np.nextafter(low, np.float32(1))]])
        threshold = tune_thresholds(pair, [[0], [1]])
        assert (pair >= threshold.astype(np.float32)).tolist() == [[False], [True]]


def test_equally_good_cuts_go_to_the_one_nearest_a_half() -> None:
    # Top 1 (F1 2/3), top 4 (F1 4/6): both 2/3; cuts lie at (0.95 + 0.9) / 2 and within 0.3 .. 0.4.
    probabilities = np.array([[0.95], [0.9], [0.85], [0.4], [0.3]])
    targets = np.array([[1], [0], [0], [1], [0]])
    assert tune_thresholds(probabilities, targets) == pytest.approx([0.35])


def test_perfect_decisions_score_one() -> None:
    targets = np.eye(4, dtype=bool)
    counts = label_counts(targets, targets)
    assert counts.micro_f1 == counts.macro_f1 == subset_accuracy(targets, targets) == 1.0
    assert (average_precision(targets, targets.astype(float)) == 1).all()


def test_wrong_input_is_named() -> None:
    with pytest.raises(ConfigError, match="yes and no"):
        label_counts([[0.5]], [[1]])
    with pytest.raises(ConfigError, match="2 targets, but 1"):
        tune_thresholds([[0.5]], [[1], [0]])
