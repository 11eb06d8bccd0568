"""Words and their tags as lists: {"tokens": ["EU", ...], "tags": ["B-ORG", ...]}."""

from __future__ import annotations

from bertsmith.files.faults import BadRowError, shown
from bertsmith.files.strict_json import type_name
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats.objects import Build, Row, id_of, missing
from bertsmith.labeled.read.word_sequences import joined, tagged_words
from bertsmith.labeled.spec import DataSpec


def builder(source: str, spec: DataSpec, account: RowAccount) -> Build:
    """Builds the examples of a file of tokenized, tagged sentences."""
    words_field = str((spec.text or ("tokens",))[0])
    field = str(spec.label[0]) if spec.label else None

    def build(line: int, row: Row) -> Example:
        words = _strings(row, words_field)
        for number, word in enumerate(words):
            if not word or word.isspace():
                raise BadRowError(
                    "the word is empty", "remove it and its tag", column=f"{words_field}[{number}]"
                )
        joiner = " " if spec.joiner is None else spec.joiner
        text, units = joined(words, joiner)
        target = None
        if field is not None:
            tags = _strings(row, field)
            if len(tags) != len(words):
                raise BadRowError(
                    f"{len(tags)} tags for {len(words)} words",
                    "write one tag for each word",
                    column=field,
                )
            target = tagged_words(units, tags, spec, lambda number: (f"{field}[{number}]", None))
        return Example(
            source=source,
            line=line,
            id=id_of(row, spec.id, line),
            texts=(text,),
            target=target,
            units=units if target is None else (),
        )

    return build


def _strings(row: Row, field: str) -> list[str]:
    if field not in row:
        raise missing(row, field)
    values = row[field]
    if not isinstance(values, list) or not values:
        what = "an empty list" if values == [] else type_name(values)
        raise BadRowError(
            f"it is {what}, not a list of strings", "write a list of strings", column=field
        )
    for number, value in enumerate(values):
        if type(value) is not str:
            raise BadRowError(
                f"{shown(value)} is {type_name(value)}, not a string",
                "write the tag's name: numbers mean nothing without their list of names",
                column=f"{field}[{number}]",
            )
    return values
