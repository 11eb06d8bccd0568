"""Calibration against loops, scikit-learn and a search by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax as softmax_oracle
from sklearn import metrics as oracle

from bertsmith.errors import ConfigError
from bertsmith.metrics.calibration import (
    brier,
    negative_log_likelihood,
    reliability,
)


def sample(seed: int, rows: int = 200, classes: int = 3, scale: float = 2.0):
    random = np.random.default_rng(seed)
    logits = random.normal(size=(rows, classes)) * scale
    chances = softmax_oracle(logits / scale, axis=1)
    return logits, np.array([random.choice(classes, p=each) for each in chances])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 120), st.sampled_from([2, 3, 7]))
def test_equal_bins_equal_loops_over_them(seed, rows, classes) -> None:
    logits, targets = sample(seed, rows, classes)
    probabilities = softmax_oracle(logits, axis=1)
    confidence, right = probabilities.max(1), probabilities.argmax(1) == targets
    expected = 0.0
    for number in range(15):
        inside = (confidence > number / 15) & (confidence <= (number + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    assert reliability(confidence, right).error == pytest.approx(expected)
    assert 0 <= expected <= 1


def test_a_model_that_is_half_right_and_all_sure_is_off_by_a_half() -> None:
    confidence, right = np.ones(4), np.array([True, False, True, False])
    bins = reliability(confidence, right)
    assert bins.error == pytest.approx(0.5)
    assert (bins.low.tolist(), bins.count.tolist()) == ([14 / 15], [4])
    assert reliability(confidence, np.ones(4, dtype=bool)).error == 0.0


def test_a_border_belongs_to_the_bin_below_it() -> None:
    bins = reliability(np.array([0.5, 0.75, 0.75]), np.array([True, True, False]), bins=4)
    assert bins.low.tolist() == [0.25, 0.5]
    assert bins.high.tolist() == [0.5, 0.75]
    assert bins.accuracy.tolist() == [1.0, 0.5]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 4]))
def test_brier_and_likelihood_are_those_of_scikit_learn(seed, classes) -> None:
    logits, targets = sample(seed, 60, classes)
    probabilities = softmax_oracle(logits, axis=1)
    each = np.eye(classes)[targets]
    assert brier(probabilities, targets) == pytest.approx(((probabilities - each) ** 2).sum() / 60)
    expected = oracle.log_loss(targets, probabilities, labels=range(classes))
    assert negative_log_likelihood(probabilities, targets) == pytest.approx(expected)


def test_certain_and_wrong_is_finite() -> None:
    assert 700 < negative_log_likelihood([[1.0, 0.0]], [1]) < 710
    assert brier([[1.0, 0.0]], [1]) == 2.0


def test_a_class_without_a_column_is_named() -> None:
    with pytest.raises(ConfigError, match="class 2 is none of the 2"):
        brier([[0.5, 0.5]], [2])
