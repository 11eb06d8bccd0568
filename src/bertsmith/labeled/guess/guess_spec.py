"""From a file to a spec: what it holds and how it is written, each guess with its reason."""

from __future__ import annotations

import re
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.faults import BadRowError
from bertsmith.files.strict_json import parse_row
from bertsmith.labeled.formats.delimited import SWAG_COLUMNS
from bertsmith.labeled.guess.columns import called, guess_named, guess_numbered, guess_task, profile
from bertsmith.labeled.guess.conll import guess_conll, looks_like_conll
from bertsmith.labeled.guess.json_rows import (
    document_format,
    guess_fields,
    row_format,
    sample_rows,
)
from bertsmith.labeled.guess.sample import Sample, SpecBuilder, take_sample
from bertsmith.labeled.guess.table import guess_table
from bertsmith.labeled.language import guess_language
from bertsmith.labeled.read.reject import Reject, reject_of
from bertsmith.labeled.spec import OBJECTS, DataSpec

STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?')  # with a colon after it, a key
QUESTIONS = {"squad": "answer", "c3": "choose"}


def guess_spec(path: Path, *, given: DataSpec | None = None) -> DataSpec:
    """Decide all that `given` leaves open, from the first records of the file."""
    builder = SpecBuilder(given or DataSpec())
    sample = take_sample(path, builder.get("encoding"))
    why = "its byte order mark" if sample.marked else "the bytes are valid"
    builder.put("encoding", sample.encoding, why)
    if not sample.filled:
        raise InputFileError(f"{path}, line 1, column 1: the file is blank; give one with rows")
    if not builder.is_set("format"):
        builder.put("format", *_format(sample))
    texts = _fill(sample, builder)
    if language := guess_language(texts):
        builder.put("language", *language)
    return builder.spec()


def _format(sample: Sample) -> tuple[str, str]:
    first = sample.filled[0].lstrip()[:1]
    if first in ("{", "["):
        if document := document_format(sample):
            return document
        # A table may begin with a bracket, too; JSON parses.
        if rows := sample_rows(sample):
            return row_format(rows)
        if first == "{":
            raise InputFileError(str(_first_fault(sample)))
    if why := looks_like_conll(sample):
        return "conll", why
    return "delimited", "rows are lines with delimiters"


def _first_fault(sample: Sample) -> Reject:
    """What is wrong with the first row of a file that has no good one at its beginning."""
    line = next(n for n, text in enumerate(sample.lines, start=1) if text.strip())
    try:
        parse_row(sample.lines[line - 1])
    except BadRowError as fault:
        return reject_of(fault, str(sample.path), line, "", part="field")
    return reject_of(BadRowError("no row is usable", "check the file"), str(sample.path), line, "")


def _fill(sample: Sample, builder: SpecBuilder) -> list[str]:
    """Decide what the format needs; gives texts of the sample."""
    form = builder.get("format")
    if form in QUESTIONS:
        builder.put("task", QUESTIONS[form], "questions with their answers")
        if form == "squad":
            builder.put("text", ("question", "context"), "as SQuAD was published")
            builder.put("group", "title", "questions of one article stay together")
        start = "\n".join(sample.lines[:500])[:100_000]
        return [text for text, colon in STRING.findall(start) if not colon]
    if form in OBJECTS:
        return guess_fields(sample_rows(sample), builder)
    if form == "conll":
        return guess_conll(sample, builder)
    return _table(sample, builder)


def _table(sample: Sample, builder: SpecBuilder) -> list[str]:
    names, rows = guess_table(sample, builder)
    if names is not None and all(called(names, (column,)) for column in SWAG_COLUMNS):
        builder.put("format", "swag", "the columns of SWAG")
        builder.put("text", SWAG_COLUMNS, "the columns of SWAG")
        builder.put("task", "choose", "the columns of SWAG")
    width = len(names) if names is not None else builder.get("columns")
    cells = [[row[i] for row in rows if len(row) == width] for i in range(width)]
    if names is not None and len(set(names)) == len(names):
        guess_named({name: profile(cells[i]) for i, name in enumerate(names)}, builder)
    else:
        guess_numbered({i + 1: profile(cells[i]) for i in range(width)}, builder)
    label: tuple[str | int, ...] = builder.get("label") or ()
    at = _place(label[0], names) if len(label) == 1 else None
    if at is not None and at < width:
        if not any(cell.strip() for cell in cells[at]):
            builder.put("label", (), "the label column is empty: read as unlabeled")
        else:
            guess_task(cells[at], builder)
    elif len(label) > 1:
        builder.put("task", "multilabel", "several label columns")
    places = [_place(column, names) for column in builder.get("text") or ()]
    return [cell for at in places if at is not None and at < width for cell in cells[at]]


def _place(column: str | int, names: list[str] | None) -> int | None:
    if isinstance(column, int):
        return column - 1
    return names.index(column) if names and column in names else None
