"""CLUENER as published: {"text": ..., "label": {kind: {words: [[start, last]]}}}."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example, Tagged
from bertsmith.labeled.formats.marked import read_marked
from bertsmith.labeled.read.reject import Reject
from bertsmith.labeled.read.spans import Marking
from bertsmith.labeled.read.targets import checked
from bertsmith.labeled.spec import DataSpec

SHAPE = '{"name": {"words": [[start, last]]}}'


def read(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The rows of a CLUENER file; the second number of a place is that of its last character."""
    return read_marked(lines, spec, account, _mark)


def _mark(value: object, field: str, spec: DataSpec, marking: Marking) -> Tagged:
    past = int(spec.span_end != "exclusive")
    for kind, words in _members(value, field):
        checked(kind, spec, f"{field}.{kind}")
        for word, places in _members(words, f"{field}.{kind}"):
            at = f"{field}.{kind}.{word}"
            if not isinstance(places, list):
                raise BadRowError(f"it is {type_name(places)}", f"write {SHAPE}", column=at)
            for pair in places:
                start, last = _pair(pair, at)
                marking.add((start, last + past, kind), at, word)
    return marking.tagged()


def _members(value: object, at: str) -> ItemsView[str, object]:
    if not isinstance(value, dict):
        raise BadRowError(f"it is {type_name(value)}", f"write {SHAPE}", column=at)
    return value.items()


def _pair(value: object, at: str) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value):
        return value[0], value[1]
    raise BadRowError(
        f"{shown(value)} is no place", "write [start, last], counted from 0", column=at
    )
