"""Typed access to a record that may be malformed: a value of the expected type, or an empty one."""

from __future__ import annotations

from typing import Any


def as_dict(value: object) -> dict[str, Any]:
    """A mapping, {} for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A sequence, [] for anything else."""
    return value if isinstance(value, list) else list(value) if isinstance(value, tuple) else []


def as_dicts(value: object) -> list[dict[str, Any]]:
    """A sequence of mappings, {} for each entry that is none."""
    return [as_dict(one) for one in as_list(value)]


def as_float(value: object) -> float:
    """A number, or the text JSON needs for one that is none; anything else is not a number."""
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except ValueError:
            return float("nan")
    return float("nan")


def part(record: object, *keys: str) -> dict[str, Any]:
    """The mapping under a path of keys, {} where the path ends early."""
    mapping = as_dict(record)
    for key in keys:
        mapping = as_dict(mapping.get(key))
    return mapping
