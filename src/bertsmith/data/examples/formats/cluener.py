"""CLUENER as published: {"text": ..., "label": {kind: {words: [[start, last]]}}}."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator

from bertsmith.data.examples.account import Account
from bertsmith.data.examples.example import Example, Tagged
from bertsmith.data.examples.formats.objects import Row, id_of, missing, read_objects, text_of
from bertsmith.data.examples.json_rows import kind_of
from bertsmith.data.examples.reject import BadRowError, Reject, shown
from bertsmith.data.examples.source import SourceLines
from bertsmith.data.examples.spans import Marking
from bertsmith.data.examples.spec import DataSpec
from bertsmith.data.examples.targets import checked

SHAPE = '{"name": {"words": [[start, last]]}}'


def read(
    lines: SourceLines, spec: DataSpec, account: Account, *, piece: bool = False
) -> Iterator[Example | Reject]:
    """The rows of a CLUENER file; the second number of a place is that of its last character."""
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
            target = _mark(row[field], field, spec, marking)
        return Example(
            source=lines.name,
            line=line,
            id=id_of(row, spec.id, line),
            texts=(text,),
            target=target,
        )

    return read_objects(lines, account, build)


def _mark(value: object, field: str, spec: DataSpec, marking: Marking) -> Tagged:
    past = int(spec.span_end != "exclusive")
    for kind, words in _members(value, field):
        checked(kind, spec, f"{field}.{kind}")
        for word, places in _members(words, f"{field}.{kind}"):
            at = f"{field}.{kind}.{word}"
            if not isinstance(places, list):
                raise BadRowError(f"it is {kind_of(places)}", f"write {SHAPE}", column=at)
            for pair in places:
                start, last = _pair(pair, at)
                marking.add((start, last + past, kind), at, word)
    return marking.tagged()


def _members(value: object, at: str) -> ItemsView[str, object]:
    if not isinstance(value, dict):
        raise BadRowError(f"it is {kind_of(value)}", f"write {SHAPE}", column=at)
    return value.items()


def _pair(value: object, at: str) -> tuple[int, int]:
    if isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value):
        return value[0], value[1]
    raise BadRowError(
        f"{shown(value)} is no place", "write [start, last], counted from 0", column=at
    )
