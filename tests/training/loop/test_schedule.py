"""Schedules: shapes, lengths by steps or by time, and a clock that never overruns."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from bertsmith.training.loop.schedule import LinearSettings, Pace, ScheduleSettings, StableSettings
from bertsmith.training.pretrain.recipe import BatchSettings


def test_linear_goes_up_to_the_peak_and_down_to_nothing() -> None:
    schedule = LinearSettings(steps=100, warmup=0.1)
    assert schedule.factor(0.05) == pytest.approx(0.5)
    assert schedule.factor(0.1) == pytest.approx(1.0)
    assert schedule.factor(0.55) == pytest.approx(0.5)
    assert schedule.factor(1.0) == 0.0


def test_stable_decays_as_one_minus_a_square_root() -> None:
    schedule = StableSettings(steps=100, warmup=0.02, decay=0.2)
    assert schedule.factor(0.01) == pytest.approx(0.5)
    assert schedule.factor(0.5) == 1.0
    assert schedule.factor(0.8) == pytest.approx(1.0)
    assert schedule.factor(0.85) == pytest.approx(0.5)
    assert schedule.factor(1.0) == 0.0


@given(st.floats(0, 1), st.sampled_from(["linear", "wsd"]))
def test_factors_stay_between_nothing_and_the_peak(share: float, kind: str) -> None:
    schedule = TypeAdapter(ScheduleSettings).validate_python({"kind": kind, "steps": 10})
    assert 0.0 <= schedule.factor(share) <= 1.0


def test_no_step_of_a_run_by_steps_is_wasted_on_a_rate_of_zero() -> None:
    pace = Pace(LinearSettings(steps=10, warmup=0.1))
    assert all(pace.factor(step, 0.0) > 0 for step in range(10))
    assert not pace.is_over(9, 1e9)
    assert pace.is_over(10, 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20m", 1200.0), ("1h30m", 5400.0), ("90s", 90.0), ("1.5h", 5400.0), ("2 min", 120.0)],
)
def test_times_are_read_as_people_write_them(text: str, expected: float) -> None:
    assert LinearSettings(budget=text).budget == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"steps": 5, "budget": 5.0},
        {"steps": 0},
        {"budget": "soon"},
        {"budget": "20m and more"},
        {"budget": -1.0},
        {"budget": math.inf},
        {"steps": 5, "warmup": 1.5},
    ],
)
def test_lengths_that_make_no_sense_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LinearSettings(**values)  # type: ignore[arg-type]


def test_warm_up_and_decay_must_fit_together() -> None:
    with pytest.raises(ValidationError, match="more than all"):
        StableSettings(steps=5, warmup=0.6, decay=0.6)


def test_by_the_clock_a_run_ends_before_a_step_that_would_not_fit() -> None:
    pace = Pace(StableSettings(budget=100.0))
    pace.reserve = 10.0
    assert not pace.is_over(0, 0.0)
    assert not pace.is_over(10, 80.0)  # 8 s a step: 88 of 90
    assert pace.is_over(11, 88.0)
    assert pace.share(5, 45.0) == pytest.approx(0.5)
    assert pace.factor(10, 85.0) < pace.factor(10, 75.0)
    assert pace.left(10, 80.0) == pytest.approx(20.0)


def test_a_reserve_never_takes_more_than_half_of_a_budget() -> None:
    pace = Pace(StableSettings(budget=10.0))
    pace.reserve = 60.0
    assert not pace.is_over(1, 1.0)
    assert pace.is_over(5, 5.0)


def test_a_batch_is_given_in_texts_or_tokens() -> None:
    assert BatchSettings(sequences=32).texts(128) == 32
    assert BatchSettings(tokens=16_384).texts(128) == 128
    assert BatchSettings(tokens=64).texts(128) == 1
    for wrong in ({}, {"sequences": 2, "tokens": 5}, {"sequences": 0}):
        with pytest.raises(ValidationError):
            BatchSettings(**wrong)
