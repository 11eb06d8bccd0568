"""Texts with marked spans: {"text": ..., "entities": [[start, end, kind]]} and its dialects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

STARTS = ("start", "start_offset", "start_idx", "begin", "from", "offset_start")
ENDS = ("end", "end_offset", "end_idx", "to", "offset_end")
KINDS = ("label", "type", "entity_group", "kind", "tag", "entity_type", "category")
PIECES = ("text", "entity", "word", "mention", "value")


def read(
    lines: Lines, spec: DataSpec, account: RowAccount, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The rows of a file of texts with spans."""
    return read_marked(lines, spec, account, _mark)


def _mark(values: object, field: str, spec: DataSpec, marking: Marking) -> Tagged:
    if not isinstance(values, list):
        raise BadRowError(
            f"it is {type_name(values)}, not a list of spans",
            "write [[start, end, kind], ...], or [] for none",
            column=field,
        )
    past = int(spec.span_end == "inclusive")
    for number, value in enumerate(values):
        at = f"{field}[{number}]"
        start, end, kind, piece = _parts(value, at)
        checked(kind, spec, at)
        marking.add((start, end + past, kind), at, piece)
    return marking.tagged()


def _parts(value: object, at: str) -> tuple[int, int, str, str | None]:
    """Start, end, kind and, if the file says so, the text of a span."""
    if isinstance(value, dict):
        parts: Sequence[object] = [_first(value, names, at) for names in (STARTS, ENDS, KINDS)]
        piece = next((value[name] for name in PIECES if type(value.get(name)) is str), None)
    elif isinstance(value, list) and len(value) == 3:
        parts, piece = value, None
    else:
        raise BadRowError(
            f"it is {type_name(value)}, not [start, end, kind]",
            'write [0, 5, "PER"] or {"start": 0, "end": 5, "label": "PER"}',
            column=at,
        )
    start, end, kind = parts
    if type(start) is not int or type(end) is not int:
        raise BadRowError(
            f"start and end are {type_name(start)} and {type_name(end)}",
            "write whole numbers, counted in characters",
            column=at,
        )
    if not isinstance(kind, str):
        raise BadRowError(f"the kind is {type_name(kind)}", "write a string", column=at)
    return start, end, str(kind), piece


def _first(value: dict[str, object], names: Sequence[str], at: str) -> object:
    for name in names:
        if name in value:
            return value[name]
    raise BadRowError(
        f"the key {shown(names[0])} is missing from the span",
        'write {"start": 0, "end": 5, "label": "PER"}',
        column=at,
    )
