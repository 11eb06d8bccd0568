"""Rows of one text and its marked places, however those are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bertsmith.files.lines import Lines
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example, Tagged
from bertsmith.labeled.formats.objects import Row, id_of, missing, read_objects, text_of
from bertsmith.labeled.read.reject import Reject
from bertsmith.labeled.read.spans import Marking
from bertsmith.labeled.spec import DataSpec

Mark = Callable[[object, str, DataSpec, Marking], Tagged]  # what a field holds, its name


def read_marked(
    lines: Lines, spec: DataSpec, account: RowAccount, mark: Mark
) -> Iterator[Example | Reject]:
    """The rows of a file of JSON objects whose places `mark` reads."""
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
            source=lines.name, line=line, id=id_of(row, spec.id, line), texts=(text,), target=target
        )

    return read_objects(lines, account, build)
