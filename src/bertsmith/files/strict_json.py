"""Strict JSON: no key twice, no NaN, no lone surrogates; values, rows, and lists by element."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from bertsmith.errors import InputFileError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.wording import shown

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


def write_json(path: Path, value: Any) -> None:
    """Put a file of JSON at `path`, whole or not at all; what is not finite is null.

    Halves of characters become JSON's escapes, which every reader takes.
    """
    text = json.dumps(json_values(value), ensure_ascii=False, indent=2, allow_nan=False)
    write_staged(path, text.encode("utf-8", "backslashreplace") + b"\n")


Element = tuple[int, int, object]  # start, end, value

LARGEST_DOCUMENT = 200_000_000  # bytes; such a document is held in memory
GAP = re.compile(r"[ \t\r\n]*")


class JsonDocument:
    """A JSON text that is parsed element by element instead of as a whole."""

    def __init__(self, text: str, name: str, first_line: int = 1) -> None:
        self.text = text
        self.name = name
        self._counted = (0, first_line)  # a place and its line

    @classmethod
    def of(cls, lines: Lines) -> JsonDocument:
        """The rest of a file as one document."""
        return cls(lines.whole(LARGEST_DOCUMENT), lines.name, lines.number + 1)

    def line_at(self, place: int) -> int:
        """The line of a place; fastest for places in rising order."""
        at, line = self._counted
        if place < at:
            return line - self.text.count("\n", place, at)
        self._counted = (place, line + self.text.count("\n", at, place))
        return self._counted[1]

    def elements(self, key: str | None = None) -> Iterator[Element]:
        """(start, end, value) of each element of the array, or of the one under `key`."""
        at = self._skip(0)
        if key is None:
            end = yield from self._array(at)
        else:
            end = yield from self._member(at, key)
        rest = self._skip(end)
        if rest != len(self.text):
            self._fail(rest, f"{shown(self.text[rest : rest + 12])} stands after the document")

    def _member(self, at: int, key: str) -> Generator[Element, None, int]:
        """The elements under one key of the outermost object."""
        self._expect(at, "{", "an object")
        at = self._skip(at + 1)
        seen = False
        while self.text[at : at + 1] != "}":
            name, at = self._value(at)
            at = self._skip(at)
            self._expect(at, ":", f"a colon after the key {shown(name)}")
            at = self._skip(at + 1)
            if name == key:
                seen = True
                at = yield from self._array(at)
            else:
                _, at = self._value(at)
            at = self._skip(at)
            if self.text[at : at + 1] == ",":
                at = self._skip(at + 1)
            else:
                self._expect(at, "}", "a comma or a closing bracket")
        if not seen:
            self._fail(at, f"the document has no key {shown(key)}")
        return at + 1

    def _array(self, at: int) -> Generator[Element, None, int]:
        self._expect(at, "[", "a list")
        at = self._skip(at + 1)
        while self.text[at : at + 1] != "]":
            value, end = self._value(at)
            yield at, end, value
            at = self._skip(end)
            if self.text[at : at + 1] == ",":
                at = self._skip(at + 1)
            else:
                self._expect(at, "]", "a comma or a closing bracket")
        return at + 1

    def _value(self, at: int) -> tuple[object, int]:
        try:
            value, end = AS_WRITTEN.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            if error.pos >= len(self.text.rstrip()):
                self._fail(len(self.text), "the document ends too early: it was cut off")
            self._fail(error.pos, f"not JSON: {error.msg}")
        except (ValueError, RecursionError) as error:
            raise value_fault(error).error(self.name, self.line_at(at)) from error
        return value, end

    def _skip(self, at: int) -> int:
        white = GAP.match(self.text, at)
        return white.end() if white else at

    def _expect(self, at: int, character: str, what: str) -> None:
        if self.text[at : at + 1] == character:
            return
        if at >= len(self.text):
            self._fail(at, "the document ends too early: it was cut off")
        self._fail(at, f"{shown(self.text[at : at + 12])} stands where {what} should")

    def _fail(self, at: int, reason: str) -> NoReturn:
        column = at - self.text.rfind("\n", 0, at)
        raise InputFileError(
            f"{self.name}, line {self.line_at(at)}, column {column}: {reason}; "
            "restore the file from its origin, or correct it there"
        )
