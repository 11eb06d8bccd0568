"""One JSON value from text: no key twice, no NaN, no half characters, numbers as written."""

from __future__ import annotations

import json
from typing import NoReturn

from bertsmith.labeled.read.reject import BadRowError, shown

WHITE = " \t\r"


class WrittenFloat(str):
    """A number with a point or an exponent, as the file spells it: 1.0 stays "1.0"."""

    __slots__ = ()


class DoubleKeyError(ValueError):
    """A key that stands twice in one object; which of the two counts is anybody's guess."""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise DoubleKeyError(double)
    return row


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=WrittenFloat, parse_constant=_no_constant
)
_scan = DECODER.scan_once  # type: ignore[attr-defined]


def parse_row(line: str) -> dict[str, object]:
    """The object on a line of JSONL; a fault names the character where it lies."""
    start = 0
    if line[:1] != "{":
        start = len(line) - len(line.lstrip(WHITE))
        if line[start : start + 1] != "{":
            raise _no_object(line, start)
    try:
        row, end = _scan(line, start)
    except json.JSONDecodeError as error:
        raise _broken(line, error) from error
    except StopIteration as error:  # how the scanner says that no value begins here
        raise _broken(line, json.JSONDecodeError("Expecting value", line, error.value)) from error
    except (ValueError, RecursionError) as error:
        raise value_fault(error) from error
    if end != len(line) and line[end:].strip(WHITE):
        raise _trailing(line, end)
    if "\\u" in line and may_hold_halves(line):
        refuse_halves(row, "")
    return row  # type: ignore[no-any-return]


def value_fault(error: ValueError | RecursionError) -> BadRowError:
    """What makes a value that is spelled right unusable."""
    if isinstance(error, DoubleKeyError):
        return BadRowError(
            f"the key {shown(str(error))} stands twice in one object",
            "remove one of them",
            column=str(error),
        )
    if isinstance(error, RecursionError):
        return BadRowError("the value is nested too deeply", "flatten it", column=1)
    return BadRowError(str(error).split(";")[0], "write a number, null or a string", column=1)


def _broken(line: str, error: json.JSONDecodeError) -> BadRowError:
    if not line[error.pos :].strip() or error.msg.startswith("Unterminated"):
        return BadRowError(
            f"the JSON object ends too early ({error.msg})",
            "complete it: a row is one line, with its brackets and quotes closed",
            column=error.colno,
        )
    return BadRowError(
        f"not JSON: {error.msg}, found {shown(line[error.pos : error.pos + 12])}",
        "write each row as one JSON object, with keys and texts in double quotes",
        column=error.colno,
    )


def _no_object(line: str, start: int) -> BadRowError:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        found = f"not JSON: the row begins with {shown(line[start : start + 12])}"
    else:
        found = f"the row is {_kind(line[start])}, not an object"
    return BadRowError(
        found, 'write each row as one JSON object such as {"text": ...}', column=start + 1
    )


def _kind(first: str) -> str:
    return {'"': "a string", "[": "a list"}.get(first, "a single value")


def _trailing(line: str, end: int) -> BadRowError:
    after = line[end:].strip(WHITE)
    return BadRowError(
        f"{shown(after)} stands after the object",
        "remove the comma: rows of JSONL have none between them"
        if after == ","
        else "write one object on each line",
        column=end + 1,
    )


def may_hold_halves(text: str) -> bool:
    """Whether JSON text spells a surrogate, which only an escape can."""
    return "\\ud" in text or "\\uD" in text


def refuse_halves(value: object, field: str) -> None:
    """Lone surrogates, which JSON can spell and no text can hold."""
    if isinstance(value, dict):
        for key, item in value.items():
            refuse_halves(key, str(key))
            refuse_halves(item, str(key))
    elif isinstance(value, list):
        for item in value:
            refuse_halves(item, field)
    elif isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            half = f"\\u{ord(value[error.start]):04x}"
            raise BadRowError(
                f"{half} is half of a character (a lone surrogate)",
                "write the whole character, or remove the half",
                column=ascii(field)[1:-1],
            ) from error


def kind_of(value: object) -> str:
    """What a JSON value is called in a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | WrittenFloat):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"
