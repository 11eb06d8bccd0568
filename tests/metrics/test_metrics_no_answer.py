"""The threshold for "no answer", against a search over every cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.metrics.no_answer import tune_no_answer

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
    found = tune_no_answer(*np.array(rows).T)
    assert np.isfinite(found.threshold)
    assert found.score == pytest.approx(mean_at(rows, found.threshold))
    nulls = [null for _, _, null in rows]
    for other in [min(nulls) - 1, *nulls, 0.0, max(nulls) + 1]:
        assert mean_at(rows, other) <= found.score + 1e-9
    if mean_at(rows, 0.0) == pytest.approx(found.score, abs=1e-13):
        assert found.threshold == 0.0


def test_by_hand() -> None:
    # Answers are right at -4 and 1; there is none to find at 3 and 6: the cut lies between 1 and 3.
    found = tune_no_answer([1, 1, 0, 0], [0, 0, 1, 1], [-4, 1, 3, 6])
    assert (found.threshold, found.score) == (2.0, 1.0)


def test_equal_scores_cannot_be_cut_apart() -> None:
    # The official walk would stop between the two at 5; no threshold can.
    found = tune_no_answer([1, 0], [0, 1], [5.0, 5.0])
    assert (found.threshold, found.score) == (0.0, 0.5)
