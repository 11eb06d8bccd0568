"""The threshold for "no answer", against a search over every cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.metrics.answers import tune_no_answer

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.5, 1.0]),
        st.sampled_from([0.0, 1.0]),
        st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10)),
    ),
    min_size=1,
    max_size=25,
)


def mean_at(rows, threshold: float) -> float:
    return sum(given_ if null <= threshold else empty for given_, empty, null in rows) / len(rows)


@settings(max_examples=120, deadline=None)
@given(ROWS)
def test_no_other_threshold_scores_more(rows) -> None:
    threshold = tune_no_answer(*np.array(rows).T)
    assert np.isfinite(threshold)
    best = mean_at(rows, threshold)
    nulls = [null for _, _, null in rows]
    for other in [min(nulls) - 1, *nulls, 0.0, max(nulls) + 1]:
        assert mean_at(rows, other) <= best + 1e-9
    if mean_at(rows, 0.0) == pytest.approx(best, abs=1e-13):
        assert threshold == 0.0


def test_by_hand() -> None:
    # Answers are right at -4 and 1; there is none to find at 3 and 6: the cut lies between 1 and 3.
    assert tune_no_answer([1, 1, 0, 0], [0, 0, 1, 1], [-4, 1, 3, 6]) == 2.0


def test_equal_scores_cannot_be_cut_apart() -> None:
    # The official walk would stop between the two at 5; no threshold can.
    assert tune_no_answer([1, 0], [0, 1], [5.0, 5.0]) == 0.0
