"""Shapes of answers: what a service sends is checked before anything is made of it.

A shape is a type, a list of one shape, a dict of shapes by key (others may be there, too), or a
tuple of shapes of which one fits. `float` takes whole numbers, and none that are not finite.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MOST_WEIGHT = 48_000_000  # bytes of memory, by estimate, that a parsed answer may take
VALUE_WEIGHT = 96  # of an element of a list or an object

NAMES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


class AnswerError(ValueError):
    """An answer of another form than the service's; the message names the place."""


def parsed(body: bytes | bytearray) -> Any:
    """The JSON value of an answer, unless it would fill the memory."""
    values = body.count(b",") + body.count(b"[") + body.count(b"{")
    if len(body) * (2 if body.isascii() else 5) + values * VALUE_WEIGHT > MOST_WEIGHT:
        raise AnswerError(f"{len(body):,} bytes of {values:,} values are too many")
    try:
        return json.loads(body, parse_constant=_no_number)
    except RecursionError:
        raise AnswerError("it is nested too deeply") from None
    except ValueError:
        raise AnswerError("it is not JSON") from None


def checked(value: Any, shape: Any, place: str = "the answer") -> Any:
    """The value, if it has the shape."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise AnswerError(f"{place} must be a list")
        for number, one in enumerate(value):
            checked(one, shape[0], f"{place}[{number}]")
    elif isinstance(shape, dict):
        if not isinstance(value, dict):
            raise AnswerError(f"{place} must be an object")
        for key, inner in shape.items():
            if key not in value:
                raise AnswerError(f"{place} has no {key}")
            checked(value[key], inner, f"{place}.{key}")
    elif isinstance(shape, tuple):
        if not any(_fits(value, one) for one in shape):
            raise AnswerError(f"{place} has another type")
    elif shape is not object and not _fits(value, shape):
        raise AnswerError(f"{place} must be {NAMES.get(shape, 'of another type')}")
    return value


def rows(value: Any, shape: Any, count: int) -> Any:
    """A list of so many values of a shape."""
    if len(checked(value, [shape])) != count:
        raise AnswerError(f"{len(value):,} results for {count:,} texts")
    return value


def _fits(value: Any, shape: Any) -> bool:
    if shape is None:
        return value is None
    if isinstance(shape, list | dict):
        try:
            checked(value, shape)
        except AnswerError:
            return False
        return True
    if isinstance(value, bool):
        return shape is bool
    if shape is float:
        return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return isinstance(value, shape)


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)
