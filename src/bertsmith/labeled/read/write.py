"""Examples into a file that reads back equal: CSV safe for spreadsheets, TSV, JSONL."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.labeled.example import (
    BY_TYPE,
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
    Target,
)
from bertsmith.labeled.guess.columns import OWN_ID
from bertsmith.labeled.spec import DataSpec
from bertsmith.wording import shown

_COMPUTED = re.compile(r"'*[=+\-@\t\r]")  # also what is guarded already, so that it comes back
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def guarded(cell: str) -> str:
    """The cell as a table for spreadsheets has it."""
    return f"'{cell}" if _COMPUTED.match(cell) else cell


def unguarded(cell: str) -> str:
    """What `guarded` was given."""
    return cell[1:] if _GUARDED.match(cell) else cell


Kind = Literal["csv", "tsv", "jsonl"]
SEPARATOR = "|"
TO_QUOTE = re.compile(r'[",\r\n]')


def write_examples(path: Path, examples: Iterable[Example], kind: Kind) -> DataSpec:
    """Write examples of one shape, the file whole or not at all; gives the spec to read it with.

    The first example decides the columns. Tags are written as spans, so that words are cut anew
    when they are read.
    """
    rest = iter(examples)
    first = next(rest, None)
    if first is None:
        raise ConfigError(f"{path}: there is no example to write")
    shape = _Shape(first, kind)
    with StagedFile(path) as file:
        for line in shape.lines(itertools.chain([first], rest)):
            try:
                file.write(line.encode())
            except UnicodeEncodeError as error:
                raise ConfigError(
                    f"{path}: half of a character (a lone surrogate) cannot be written: "
                    f"{shown(error.object[error.start - 10 : error.start])}"
                ) from error
    return shape.spec()


def csv_line(cells: Sequence[str]) -> str:
    """A row of CSV; cells that a spreadsheet would compute begin with an apostrophe."""
    return ",".join(_quoted(guarded(cell)) for cell in cells) + "\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if TO_QUOTE.search(cell) else cell


def tsv_line(cells: Sequence[str]) -> str:
    """A row of TSV, which has no way to write a tab or a line break inside a cell."""
    for cell in cells:
        if "\t" in cell or "\n" in cell:
            raise ConfigError(
                f"{shown(cell)} holds a tab or a line break, which TSV cannot; write CSV or JSONL"
            )
    if cells[-1].endswith("\r"):
        raise ConfigError(
            f"{shown(cells[-1])} ends in a carriage return, which TSV loses; write CSV or JSONL"
        )
    return "\t".join(cells) + "\n"


class _Shape:
    """The columns of a file, and how an example fills them."""

    def __init__(self, first: Example, kind: Kind) -> None:
        self._kind = kind
        self._texts = _text_names(first)
        self._extra = tuple(first.extra)
        self._of = type(first.target)
        self._target = BY_TYPE.get(self._of)
        self._label = self._target.column if self._target else None
        self._form = self._target.form if self._target else None
        if self._form is not None and kind != "jsonl":
            raise ConfigError(f"tags and answers do not fit into {kind}; write JSONL")
        columns = [self._id, *self._texts, *([self._label] if self._label else []), *self._extra]
        if len(set(columns)) != len(columns):
            raise ConfigError(f"an extra column has the name of another one: {', '.join(columns)}")
        self._columns = tuple(columns)

    @property
    def _id(self) -> str:
        return "id" if self._kind == "jsonl" else OWN_ID

    def spec(self) -> DataSpec:
        """How the file is to be read."""
        table = self._kind != "jsonl"
        return DataSpec(
            format="delimited" if table else self._form or "jsonl",  # type: ignore[arg-type]
            task=self._target.task if self._target else None,
            encoding="utf-8",
            delimiter={"csv": ",", "tsv": "\t"}.get(self._kind),
            quoting={"csv": "double", "tsv": "none"}.get(self._kind),  # type: ignore[arg-type]
            header=True if table else None,
            columns=self._columns if table else None,
            guarded=True if self._kind == "csv" else None,
            text=self._texts,
            label=(self._label,) if self._label else (),
            label_separator=SEPARATOR if table and self._of is LabelSet else None,
            id=self._id,
            extra=self._extra,
            empty="keep",
            why={"format": "as it was written"},
        )

    def lines(self, examples: Iterable[Example]) -> Iterator[str]:
        """The lines of the file."""
        if self._kind == "jsonl":
            for example in examples:
                row = json.dumps(self._object(example), ensure_ascii=False)
                # JSON takes these as text, but some readers split lines at them.
                yield row.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029") + "\n"
            return
        line: Callable[[Sequence[str]], str] = csv_line if self._kind == "csv" else tsv_line
        yield line(self._columns)
        for example in examples:
            yield line(self._cells(example))

    def _cells(self, example: Example) -> list[str]:
        self._check(example)
        target = [] if example.target is None else [_cell(example.target)]
        extra = [example.extra[name] for name in self._extra]
        return [example.id, *example.texts, *target, *extra]

    def _object(self, example: Example) -> dict[str, object]:
        self._check(example)
        row: dict[str, object] = {"id": example.id}
        row |= zip(self._texts, example.texts, strict=True)
        if self._label is not None and example.target is not None:
            row[self._label] = target_value(example.target)
        return row | {name: example.extra[name] for name in self._extra}

    def _check(self, example: Example) -> None:
        shape = (len(example.texts), type(example.target), tuple(example.extra))
        if shape != (len(self._texts), self._of, self._extra):
            raise ConfigError(
                f"{example.source}, line {example.line}: the example has another shape than the "
                "first one (texts, kind of label, extras); write them to files of their own"
            )


def _text_names(example: Example) -> tuple[str, ...]:
    count = len(example.texts)
    if isinstance(example.target, ChoiceIndex):
        return ("context", *(f"choice{number}" for number in range(count - 1)))
    if isinstance(example.target, Answers):
        return ("question", "context")
    if count < 3:
        return ("text",) if count == 1 else ("text_a", "text_b")
    return tuple(f"text_{number}" for number in range(1, count + 1))


def _cell(target: Target) -> str:
    if isinstance(target, LabelSet):
        for name in target.names:
            if SEPARATOR in name:
                raise ConfigError(
                    f"the label {shown(name)} holds {SEPARATOR}, which parts labels; write JSONL"
                )
        return SEPARATOR.join(target.names)
    return target.name if isinstance(target, Label) else repr(target_value(target))


def target_value(target: Target) -> object:
    """A target as JSON rows spell it."""
    if isinstance(target, LabelSet):
        return list(target.names)
    if isinstance(target, ScoreTarget):
        return target.value
    if isinstance(target, ChoiceIndex):
        return target.index
    if isinstance(target, Answers):
        return {
            "text": [*(text for text, _ in target.placed), *target.unplaced],
            "answer_start": [
                *(start for _, start in target.placed),
                *(-1 for _ in target.unplaced),
            ],
        }
    if isinstance(target, Tagged):
        return [list(span) for span in spans_of(target)]
    return target.name


def spans_of(target: Tagged) -> list[tuple[int, int, str]]:
    """The (start, end, kind) that BIO tags mark."""
    spans: list[tuple[int, int, str]] = []
    inside: str | None = None
    for (start, end), tag in zip(target.units, target.tags, strict=True):
        kind = tag[2:]
        if tag[:1] == "I" and inside == kind and spans:
            spans[-1] = (spans[-1][0], end, kind)
        elif tag != "O":
            spans.append((start, end, kind))
        inside = None if tag == "O" else kind
    return spans
