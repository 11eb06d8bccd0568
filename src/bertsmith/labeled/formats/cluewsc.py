"""CLUEWSC as published: does the pronoun mean this noun? The text shows both between marks."""

from __future__ import annotations

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats.objects import Build, Row, id_of, missing, text_of
from bertsmith.labeled.read.targets import json_target, label_reader
from bertsmith.labeled.spec import DataSpec

FIELD = "target"
MARKS = (("span1", "_", "_"), ("span2", "[", "]"))  # as the benchmark's own baseline sets them


def builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a CLUEWSC file."""
    field = str(spec.label[0]) if spec.label else None
    read_label = label_reader(spec, field or "", 0)

    def build(line: int, row: Row) -> Example:
        text = text_of(row, "text", keep_empty=spec.empty == "keep")
        marked, names = _marked(text, row)
        target = None
        if field is not None:
            if field not in row:
                raise missing(row, field)
            target = json_target(row[field], read_label, spec, field)
        return Example(
            source=source,
            line=line,
            id=id_of(row, spec.id, line),
            texts=(marked,),
            target=target,
            extra=names,
        )

    return build


def _marked(text: str, row: Row) -> tuple[str, dict[str, str]]:
    spans = row.get(FIELD)
    if not isinstance(spans, dict):
        raise (
            missing(row, FIELD)
            if FIELD not in row
            else BadRowError(
                f"it is {type_name(spans)}", "write an object with two spans", column=FIELD
            )
        )
    names = {}
    cuts: list[tuple[int, int, str]] = []  # place, order, mark
    for name, before, after in MARKS:
        piece, start = spans.get(f"{name}_text"), spans.get(f"{name}_index")
        if type(piece) is not str or type(start) is not int or not piece:
            raise BadRowError(
                "text and index of the span are not a string and a number",
                f'write "{name}_text" and "{name}_index"',
                column=f"{FIELD}.{name}_text",
            )
        if start < 0 or not text.startswith(piece, start):
            raise BadRowError(
                f"{shown(piece)} does not stand at {start}",
                "correct the index: characters are counted from 0",
                column=f"{FIELD}.{name}_index",
            )
        names[f"{name}_text"] = piece
        cuts += [(start, 1, before), (start + len(piece), 0, after)]
    for place, _, mark in sorted(cuts, reverse=True):
        text = text[:place] + mark + text[place:]
    return text, names
