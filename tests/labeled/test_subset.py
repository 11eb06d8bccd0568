"""Some rows of many: as many as asked for, labels in their shares, more when more are asked for."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example, Label, ScoreTarget
from bertsmith.labeled.split.stratify import some_rows


def labeled(labels: str) -> list[Example]:
    return [
        Example(source="rows", line=n + 1, id=str(n), texts=(f"text {n}",), target=Label(label))
        for n, label in enumerate(labels)
    ]


def names(rows: list[Example]) -> Counter[str]:
    return Counter(row.target.name for row in rows if isinstance(row.target, Label))


@given(st.text("abc", min_size=1, max_size=60), st.integers(1, 60), st.integers(0, 3))
def test_rows_come_in_order_in_their_number_and_grow(labels: str, most: int, seed: int) -> None:
    rows = labeled(labels)
    found = some_rows(rows, most, seed=seed)
    assert len(found) == min(most, len(rows))
    lines = [row.line for row in found]
    assert lines == sorted(set(lines))
    assert found == some_rows(rows, most, seed=seed)
    assert {row.line for row in some_rows(rows, max(1, most - 1), seed=seed)} <= set(lines)
    if most >= len(set(labels)):
        assert set(names(found)) == set(labels)  # no label is lost


def test_labels_keep_their_shares() -> None:
    rows = labeled("a" * 800 + "b" * 150 + "c" * 50)
    found = names(some_rows(rows, 100))
    assert found == {"a": 80, "b": 15, "c": 5}
    assert some_rows(rows, 100) != some_rows(rows, 100, seed=1)


def test_all_rows_and_rows_without_classes_and_none() -> None:
    rows = labeled("abab")
    assert some_rows(rows, None) == rows
    assert some_rows(rows, 10) == rows
    scores = [
        Example(source="s", line=n, id=str(n), texts=(str(n),), target=ScoreTarget(n / 7))
        for n in range(50)
    ]
    assert len(some_rows(scores, 12)) == 12
    with pytest.raises(ConfigError, match="give 1 or more"):
        some_rows(rows, 0)
