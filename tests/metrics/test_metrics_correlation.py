"""Correlations and errors of numbers, against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bertsmith.errors import ConfigError
from bertsmith.metrics.correlation import mean_squared_error, pearson, ranks, spearman

COLUMNS = st.integers(2, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-5, 5), min_size=n, max_size=n)] * 2)
)


@settings(max_examples=100, deadline=None)
@given(COLUMNS, st.sampled_from([1.0, 1e-9, 0.1, 1e150]), st.sampled_from([0.0, 3.3]))
def test_correlations_are_those_of_scipy_or_nan(columns, scale, shift) -> None:
    targets, predictions = (np.array(column) * scale + shift for column in columns)
    if len(set(columns[0])) < 2 or len(set(columns[1])) < 2:
        assert math.isnan(pearson(targets, predictions))
        assert math.isnan(spearman(targets, predictions))
        return
    exact = stats.pearsonr(*columns).statistic
    assert pearson(targets, predictions) == pytest.approx(exact, abs=1e-6)
    if len(set(targets)) == len(set(columns[0])) and len(set(predictions)) == len(set(columns[1])):
        expected = stats.spearmanr(*columns).statistic
        assert spearman(targets, predictions) == pytest.approx(expected, abs=1e-12)
    assert -1 <= pearson(targets, predictions) <= 1


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30))
def test_equal_values_share_their_mean_rank(values) -> None:
    expected = stats.rankdata(values)
    np.testing.assert_array_equal(ranks(np.array(values, dtype=float)), expected)


def test_what_cannot_be_correlated_is_nan_not_a_crash() -> None:
    for targets, predictions in (
        ([1.0], [2.0]),
        ([0.1] * 3, [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [0.1] * 3),
        ([1.0, math.nan, 3.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0], [math.inf, 0.0]),
    ):
        assert math.isnan(pearson(targets, predictions))
        assert math.isnan(spearman(targets, predictions))


def test_a_monotone_curve_has_perfect_ranks() -> None:
    values = np.linspace(0.1, 3, 20)
    assert spearman(values, np.exp(values)) == pytest.approx(1.0)
    assert spearman(values, -values) == pytest.approx(-1.0)
    assert pearson(values, np.exp(values)) < 0.99


def test_the_squared_error_by_hand() -> None:
    assert mean_squared_error([1, 2, 3], [1, 4, 0]) == pytest.approx(13 / 3)
    with pytest.raises(ConfigError, match="1 dimension"):
        mean_squared_error([[1.0]], [1.0])
