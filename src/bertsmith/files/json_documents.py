"""JSON documents read one array element at a time, each with its place in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from typing import NoReturn

from bertsmith.errors import InputFileError
from bertsmith.files.faults import shown
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import AS_WRITTEN, value_fault

Element = tuple[int, int, object]  # start, end, value

LARGEST_DOCUMENT = 200_000_000  # bytes; such a document is held in memory
WHITE = re.compile(r"[ \t\r\n]*")


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
        white = WHITE.match(self.text, at)
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
