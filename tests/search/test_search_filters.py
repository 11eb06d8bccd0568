"""Filters on columns: what they match, what they refuse."""

from __future__ import annotations

import pytest

from bertsmith.errors import ConfigError
from bertsmith.search.filters import (
    Condition,
    all_match,
    check_columns,
    parse_where,
    where_of,
)


@pytest.mark.parametrize(
    ("condition", "meta", "matches"),
    [
        ("label=pos", {"label": "pos"}, True),
        ("label=pos", {"label": "neg"}, False),
        ("label=pos", {}, False),
        ("label!=pos", {}, True),
        ("label!=pos", {"label": "pos"}, False),
        ("label=a=b", {"label": "a=b"}, True),
        ("label=", {"label": ""}, True),
        ("year>=2020", {"year": "2020"}, True),
        ("year>2020", {"year": "2020"}, False),
        ("year<=1e3", {"year": "999.5"}, True),
        ("year < 10", {"year": "9"}, True),  # as numbers: "9" is not less than "10" as text
        ("year<10", {"year": "many"}, False),
        ("year<10", {"year": "nan"}, False),
    ],
)
def test_a_condition(condition: str, meta: dict[str, str], matches: bool) -> None:
    assert all_match(parse_where([condition]), meta) is matches


def test_all_conditions_must_hold() -> None:
    where = parse_where(["a=1", "b>2"])
    assert all_match(where, {"a": "1", "b": "3"})
    assert not all_match(where, {"a": "1", "b": "2"})


def test_what_python_gives() -> None:
    assert where_of({"a": ["1", "2"]}) == (Condition("a", "=", ("1", "2")),)
    assert where_of(["a>1"]) == where_of("a>1") == (Condition("a", ">", ("1",)),)
    assert where_of(None) == ()


@pytest.mark.parametrize("text", ["label", "", "=x", "year>soon"])
def test_what_is_no_condition(text: str) -> None:
    with pytest.raises(ConfigError, match="not a"):
        parse_where([text])


def test_an_unknown_column_has_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'label'"):
        check_columns(parse_where(["lable=1"]), ["label", "year"])
    with pytest.raises(ConfigError, match="texts alone"):
        check_columns(parse_where(["label=1"]), [])
