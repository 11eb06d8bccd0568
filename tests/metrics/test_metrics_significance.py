"""Intervals and tests against scipy, and against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bertsmith.errors import ConfigError
from bertsmith.metrics.significance import bootstrap, mcnemar, over_seeds, paired_bootstrap


@pytest.mark.parametrize("count", [2, 3, 4, 9, 30, 200, 5000])
def test_the_interval_over_seeds_has_students_quantiles(count) -> None:
    values = np.linspace(-1, 1, count)
    expected = stats.t.ppf(0.975, count - 1) * stats.sem(values)
    assert over_seeds(values).high == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=8))
def test_the_interval_over_seeds_is_students(values) -> None:
    spread = over_seeds(values)
    assert spread.mean == pytest.approx(np.mean(values))
    assert spread.deviation == pytest.approx(np.std(values, ddof=1))
    if spread.deviation > 0:
        low, high = stats.t.interval(
            0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values)
        )
        assert (spread.low, spread.high) == pytest.approx((low, high), rel=1e-7)


def test_one_seed_has_a_mean_and_no_spread() -> None:
    found = over_seeds([0.9])
    assert (found.mean, found.count) == (0.9, 1)
    assert all(math.isnan(value) for value in (found.deviation, found.low, found.high))
    with pytest.raises(ConfigError, match="no seeds"):
        over_seeds([])


def test_the_bootstrap_of_a_share_is_near_the_normal_interval() -> None:
    right = np.random.default_rng(1).random(400) < 0.8
    found = bootstrap(lambda rows: float(right[rows].mean()), 400, samples=2000)
    reach = 1.96 * math.sqrt(found.value * (1 - found.value) / 400)
    assert found.value == right.mean()
    assert found.low == pytest.approx(found.value - reach, abs=0.005)
    assert found.high == pytest.approx(found.value + reach, abs=0.005)


def test_a_bootstrap_repeats_by_its_seed_and_skips_what_does_not_exist() -> None:
    values = np.arange(30.0)

    def figure(rows) -> float:
        return float(values[rows].mean()) if 0 in rows else math.nan

    one, two, other = (bootstrap(figure, 30, samples=200, seed=seed) for seed in (5, 5, 6))
    assert one == two != other
    assert one.low < one.value < one.high
    nothing = bootstrap(lambda rows: math.nan, 30, samples=10)
    assert math.isnan(nothing.low)
    assert math.isnan(nothing.high)


def models(difference: float, seed: int, rows: int = 500):
    random = np.random.default_rng(seed)
    hard = random.random(rows)
    first = hard + random.normal(0, 0.1, rows) < 0.8
    second = hard + random.normal(0, 0.1, rows) < 0.8 + difference
    return first, second


def compared(first, second, samples: int = 1000):
    return paired_bootstrap(
        lambda rows: float(first[rows].mean()),
        lambda rows: float(second[rows].mean()),
        len(first),
        samples=samples,
    )


def test_a_clear_difference_is_significant_and_none_is_not() -> None:
    first, second = models(0.1, 2)
    found = compared(first, second)
    assert found.value == pytest.approx(second.mean() - first.mean())
    assert 0 < found.low < found.value < found.high
    assert found.p == pytest.approx(1 / 1001)
    same = compared(first, first)
    assert (same.value, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)


def test_swapping_the_models_turns_the_sign_only() -> None:
    first, second = models(0.03, 3)
    one, two = compared(first, second), compared(second, first)
    assert (one.value, one.p) == (-two.value, two.p)
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low))


def test_equal_models_are_called_different_about_as_often_as_promised() -> None:
    found = [compared(*models(0.0, seed, 200), samples=200).p < 0.05 for seed in range(200)]
    assert 2 <= sum(found) <= 22  # 10 of 200 expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=80))
def test_mcnemar_is_the_exact_binomial_test(rows) -> None:
    first, second = np.array(rows).T
    only, other = int((first & ~second).sum()), int((second & ~first).sum())
    expected = stats.binomtest(only, only + other).pvalue if only + other else 1.0
    assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9)
    assert mcnemar(second, first) == mcnemar(first, second)


def test_mcnemar_of_many_rows_stays_exact() -> None:
    first = np.repeat([True, False], [5200, 4800])
    expected = stats.binomtest(4800, 10_000).pvalue
    assert mcnemar(first, ~first) == pytest.approx(expected, rel=1e-8)


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(ConfigError, match="rows and samples"):
        bootstrap(lambda rows: 0.0, 0)
