"""Strict JSON: no key twice, no NaN, no lone surrogates, numbers as written for data rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from bertsmith.files.faults import BadRowError, shown

WHITE = " \t\r"


class WrittenFloat(str):
    """A number with a point or an exponent, as the file spells it: 1.0 stays "1.0"."""

    __slots__ = ()


class DoubleKeyError(ValueError):
    """A key that stands twice in one object; which of the two counts is anybody's guess."""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    row = dict(pairs)
    if len(row) != len(pairs):
        (double, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise DoubleKeyError(double)
    return row


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


AS_WRITTEN = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=WrittenFloat, parse_constant=_no_constant
)
AS_FLOATS = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
)
_scan = AS_WRITTEN.scan_once  # type: ignore[attr-defined]


def parse_value(text: str) -> Any:
    """The one JSON value of a text, with floats; the fault has the line and the column."""
    try:
        return AS_FLOATS.decode(text)
    except json.JSONDecodeError as error:
        raise BadRowError(
            f"not JSON: {error.msg}", "correct it", column=error.colno, line=error.lineno
        ) from error
    except (ValueError, RecursionError) as error:
        raise value_fault(error) from error


def parse_row(line: str) -> dict[str, object]:
    """The object on a line of JSONL, numbers as written; a fault has the column."""
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
    if "\\u" in line and may_hold_surrogates(line):
        refuse_surrogates(row, "")
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
    if str(error).startswith("Exceeds the limit"):
        return BadRowError("a number has too many digits", "write a shorter one", column=1)
    return BadRowError(str(error).split(";")[0], "write a number, null or a string", column=1)


def _broken(line: str, error: json.JSONDecodeError) -> BadRowError:
    if not line[error.pos :].strip() or error.msg.startswith("Unterminated"):
        return BadRowError(
            f"the JSON object ends too early ({error.msg})",
            "complete it: a row is one line, with its brackets and quotes closed",
            column=error.colno,
        )
    return BadRowError(
        f"not JSON: {error.msg}, but it is {shown(line[error.pos : error.pos + 12])}",
        "write each row as one JSON object, with keys and texts in double quotes",
        column=error.colno,
    )


def _no_object(line: str, start: int) -> BadRowError:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        reason = f"not JSON: the row begins with {shown(line[start : start + 12])}"
    else:
        reason = f"the row is {type_name(value)}, not an object"
    return BadRowError(
        reason, 'write each row as one JSON object such as {"text": ...}', column=start + 1
    )


def _trailing(line: str, end: int) -> BadRowError:
    after = line[end:].strip(WHITE)
    return BadRowError(
        f"{shown(after)} stands after the object",
        "remove the comma: rows of JSONL have none between them"
        if after == ","
        else "write one object on each line",
        column=end + 1,
    )


def may_hold_surrogates(text: str) -> bool:
    """Whether JSON text spells a surrogate, which only an escape can."""
    return "\\ud" in text or "\\uD" in text


def refuse_surrogates(value: object, field: str) -> None:
    """Refuse lone surrogates, which JSON can spell and no text can hold."""
    if isinstance(value, dict):
        for key, item in value.items():
            refuse_surrogates(key, str(key))
            refuse_surrogates(item, str(key))
    elif isinstance(value, list):
        for item in value:
            refuse_surrogates(item, field)
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


def type_name(value: object) -> str:
    """What the type of a JSON value is called in a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float | WrittenFloat):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def wrong_type(value: object, wanted: str, advice: str, column: int | str) -> BadRowError:
    """The fault of a JSON value of another type than `wanted`."""
    return BadRowError(f"it is {type_name(value)}, not {wanted}", advice, column=column)


def json_values(value: Any) -> Any:
    """Any nest of mappings, sequences, arrays and numbers as JSON values; nan and inf are None."""
    if isinstance(value, Mapping):
        return {str(key): json_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return json_values(value.tolist())
    return value
