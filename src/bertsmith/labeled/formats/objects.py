"""Rows that are JSON objects: one per line, or the elements of one list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.json_documents import LARGEST_DOCUMENT, JsonDocument
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import may_hold_surrogates, parse_row, refuse_surrogates, type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.reject import Reject, check_texts, reject_of

Row = Mapping[str, object]
Build = Callable[[int, Row], Example]


def read_objects(lines: Lines, account: RowAccount, build: Build) -> Iterator[Example | Reject]:
    """The example of each row, as `build(line, row)` makes it."""
    listed = lines.first_character() == "["
    for line, raw, row in _listed(lines) if listed else _lined(lines, account):
        try:
            if isinstance(row, BadRowError):
                raise row
            account.raw = raw
            yield build(line, row)
        except BadRowError as fault:
            yield reject_of(fault, lines.name, line, raw, part="field")


def _lined(lines: Lines, account: RowAccount) -> Iterator[tuple[int, str, Row | BadRowError]]:
    for line in lines:
        if not isinstance(line, str):
            yield lines.number, line.raw, line
        elif not line or line.isspace():
            account.blank += 1
        else:
            try:
                row: Row | BadRowError = parse_row(line)
            except BadRowError as fault:
                row = fault
            yield lines.number, line, row


def _listed(lines: Lines) -> Iterator[tuple[int, str, Row | BadRowError]]:
    first = lines.number + 1
    document = JsonDocument(lines.whole(LARGEST_DOCUMENT), lines.name, first)
    halves = may_hold_surrogates(document.text)
    for start, end, value in document.elements():
        row: Row | BadRowError
        if not isinstance(value, dict):
            row = BadRowError(
                f"the row is {type_name(value)}, not an object",
                'write each row as one JSON object such as {"text": ...}',
            )
        else:
            row = value
            try:
                if halves:
                    refuse_surrogates(value, "")
            except BadRowError as fault:
                row = fault
        yield document.line_at(start), document.text[start:end], row


def string(row: Row, field: str, *, joined: bool = False) -> str:
    """The string under a key; `joined` also takes a list of strings."""
    value = row.get(field)
    if type(value) is str:
        return value
    if field not in row:
        raise missing(row, field)
    if joined and isinstance(value, list) and all(type(item) is str for item in value):
        return " ".join(value)
    raise BadRowError(
        f"it is {type_name(value)}, not a string", "put it in double quotes", column=field
    )


def missing(row: Row, field: str) -> BadRowError:
    """The fault of a row that lacks a key."""
    keys = ", ".join(shown(key) for key in list(row)[:12])
    return BadRowError(
        f"the key {shown(field)} is missing; the keys are {keys or 'none'}",
        "add it, or name another",
        column=field,
    )


def text_of(row: Row, field: str, *, keep_empty: bool = False) -> str:
    """The one text of a row."""
    text = string(row, field)
    if not text or "\0" in text or text.isspace():
        check_texts((text,), (field,), keep_empty=keep_empty)
    return text


def plain(value: object) -> str:
    """Any JSON value as an extra column shows it."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(plain(item) for item in value)
    return str(value)


def id_of(row: Row, field: str | int | None, line: int) -> str:
    """The row's own id, else its line."""
    value = row.get(str(field)) if field is not None else None
    if value is None:
        return str(line)
    return str(value) if type(value) is int else plain(value)
