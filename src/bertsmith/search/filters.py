"""Filters on the columns of an index: `label=pos`, `year>=2020`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bertsmith.errors import ConfigError, unknown

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
_CONDITION = re.compile(r"(?P<column>.+?)(?P<operator>!=|<=|>=|=|<|>)(?P<value>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """A column compared with values: any of them for =, none of them for !=.

    <, <=, > and >= compare numbers; a row whose cell is not a number does not match. A row without
    the column matches != alone.
    """

    column: str
    operator: Operator
    values: tuple[str, ...]

    def matches(self, meta: Mapping[str, str]) -> bool:
        """Whether a row has what is wanted."""
        cell = meta.get(self.column)
        if self.operator == "=":
            return cell in self.values
        if self.operator == "!=":
            return cell not in self.values
        number = None if cell is None else number_of(cell)
        if number is None:
            return False
        wanted = float(self.values[0])
        if self.operator == "<":
            return number < wanted
        if self.operator == "<=":
            return number <= wanted
        return number > wanted if self.operator == ">" else number >= wanted


Where = tuple[Condition, ...]
"""All conditions must hold."""
Conditions = Mapping[str, str | Sequence[str]] | Sequence[str | Condition] | str | None
"""The same as Python code may give it."""


def parse_where(texts: Iterable[str]) -> Where:
    """Conditions as a command line writes them: `column=value`, also != < <= > >=."""
    return tuple(_parsed(text) for text in texts)


def where_of(given: Conditions) -> Where:
    """Conditions as Python takes them: {"label": "pos"}, {"label": ["a", "b"]}, ["year>=2020"]."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        return tuple(
            Condition(column, "=", (value,) if isinstance(value, str) else tuple(value))
            for column, value in given.items()
        )
    listed: Sequence[str | Condition] = [given] if isinstance(given, str) else given
    return tuple(one if isinstance(one, Condition) else _parsed(one) for one in listed)


def check_columns(where: Where, columns: Sequence[str]) -> None:
    """Refuse a column that no row has."""
    for condition in where:
        if condition.column not in columns:
            if not columns:
                raise ConfigError(
                    f"there is no column {condition.column!r}: the index holds texts alone"
                )
            raise unknown("column of the index", condition.column, columns)


def all_match(where: Where, meta: Mapping[str, str]) -> bool:
    """Whether a row meets every condition."""
    return all(condition.matches(meta) for condition in where)


def _parsed(text: str) -> Condition:
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise ConfigError(
            f"{text!r} is not a condition; write COLUMN=VALUE, or use != < <= > >= in place of ="
        )
    operator = next(one for one in OPERATORS if one == parts["operator"])
    value = parts["value"].strip() if operator not in ("=", "!=") else parts["value"]
    if operator not in ("=", "!=") and number_of(value) is None:
        raise ConfigError(f"{text!r} compares numbers, but {value!r} is not a number")
    return Condition(parts["column"].strip(), operator, (value,))


def number_of(text: str) -> float | None:
    """A cell as a number; None if it is none, which matches no comparison."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value == value else None  # nan compares with nothing
