"""Paired differences over seeds and Holm's correction, against scipy and by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from bertsmith.errors import ConfigError
from bertsmith.metrics.significance import holm, paired_over_seeds


def test_the_interval_and_p_are_those_of_a_paired_t_test() -> None:
    random = np.random.default_rng(0)
    for count in (2, 3, 5, 10):
        first = random.normal(size=count)
        second = first + 0.3 + random.normal(size=count)
        ours = paired_over_seeds(first.tolist(), second.tolist())
        theirs = stats.ttest_rel(second, first)
        low, high = theirs.confidence_interval(0.95)
        assert ours.value == pytest.approx(float((second - first).mean()))
        assert ours.p == pytest.approx(float(theirs.pvalue), rel=1e-9)
        assert (ours.low, ours.high) == (pytest.approx(float(low)), pytest.approx(float(high)))


def test_differences_without_spread_have_no_p_unless_they_are_zero() -> None:
    assert paired_over_seeds([1.0, 2.0], [1.0, 2.0]).p == 1.0
    assert math.isnan(paired_over_seeds([1.0, 2.0, 3.0], [1.5, 2.5, 3.5]).p)
    assert math.isnan(paired_over_seeds([1.0], [2.0]).p)
    with pytest.raises(ConfigError, match="cannot be paired"):
        paired_over_seeds([1.0], [1.0, 2.0])


def test_holm_steps_down_and_never_lets_a_larger_p_below_a_smaller_one() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.6]) == pytest.approx([1.0, 1.0])
    some = holm([0.02, math.nan])
    assert some[0] == pytest.approx(0.02)
    assert math.isnan(some[1])
    assert holm([]) == []
