"""Texts with marked spans.

{"text": ..., "entities": [[start, end, kind]]} and its dialects, and CLUENER as published:
{"text": ..., "label": {kind: {words: [[start, last]]}}}.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Sequence

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example, Tagged
from bertsmith.labeled.formats.objects import Build, Row, id_of, missing, text_of
from bertsmith.labeled.read.spans import Marking
from bertsmith.labeled.read.targets import checked
from bertsmith.labeled.spec import DataSpec

STARTS = ("start", "start_offset", "start_idx", "begin", "from", "offset_start")
ENDS = ("end", "end_offset", "end_idx", "to", "offset_end")
KINDS = ("label", "type", "entity_group", "kind", "tag", "entity_type", "category")
PIECES = ("text", "entity", "word", "mention", "value")
SHAPE = '{"name": {"words": [[start, last]]}}'  # of CLUENER

Mark = Callable[[object, str, DataSpec, Marking], Tagged]  # what a field holds, its name


def builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of texts with spans."""
    return _builder(source, spec, account, _mark)


def cluener_builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of CLUENER, whose second number is that of the last character."""
    return _builder(source, spec, account, _mark_cluener)


def _builder(source: str, spec: DataSpec, account: RowAccount, mark: Mark) -> Build:
    text_field = str((spec.text or ("text",))[0])
    field = str(spec.label[0]) if spec.label else None

    def build(line: int, row: Row) -> Example:
        text = text_of(row, text_field, keep_empty=spec.empty == "keep")
        target = None
        if field is not None:
            if field not in row:
                raise missing(row, field)
            marking = Marking(
                text, field=field, place=f"line {line}", overlap=spec.overlap, account=account
            )
            target = mark(row[field], field, spec, marking)
        return Example(
            source=source, line=line, id=id_of(row, spec.id, line), texts=(text,), target=target
        )

    return build


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


def _mark_cluener(value: object, field: str, spec: DataSpec, marking: Marking) -> Tagged:
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
