"""Source rows with all their columns, so that predictions can be appended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.strict_json import parse_row
from bertsmith.labeled.example import Example, Tagged
from bertsmith.labeled.formats.objects import plain
from bertsmith.labeled.read.reader import Examples, OnError, read_examples
from bertsmith.labeled.spec import Column, DataSpec

TABLES = ("delimited", "swag")
OBJECTS = ("jsonl", "spans", "words", "cluener", "cluewsc", "answers")
LINE_BREAKS = str.maketrans({"\n": " ", "\r": " ", "\u2028": "\\u2028", "\u2029": "\\u2029"})


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One row of a file: cells by the names of their columns, or the JSON object as written."""

    cells: Mapping[str, object]
    raw: str | None = None

    @property
    def columns(self) -> Mapping[str, object]:
        """Values by column or key."""
        return self.cells if self.raw is None else parse_row(self.raw)

    def json_start(self) -> str:
        """The row as a JSON object on one line, without its last bracket; numbers as written."""
        if self.raw is not None:
            # A line break in a JSON text stands between values: a space will do.
            return self.raw.strip().translate(LINE_BREAKS)[:-1].rstrip()
        return json.dumps(self.cells, ensure_ascii=False).translate(LINE_BREAKS)[:-1]

    def cell(self, name: str) -> str:
        """A value as a table shows it, "" if the row has none."""
        value = self.columns.get(name)
        if isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=False)
        return plain(value)


class SourceRows(Iterator[tuple[Example, SourceRow]]):
    """The rows of a file, one by one, in memory that does not grow with it."""

    def __init__(
        self, path: Path, spec: DataSpec, *, on_error: OnError = "stop", also: tuple[str, ...] = ()
    ) -> None:
        """`also` are columns that the examples must have as extras."""
        self.spec = _with_all_columns(spec, also)
        self.rows: Examples = read_examples(path, self.spec, on_error=on_error)

    def __next__(self) -> tuple[Example, SourceRow]:
        example = next(self.rows)
        if self.spec.delimiter == "\n":  # whole lines: a column without a name
            return example, SourceRow({"text": example.texts[0]})
        if self.spec.format in TABLES:
            return example, SourceRow(example.extra)
        if self.spec.format in OBJECTS:
            return example, SourceRow({}, self.rows.account.raw)
        return example, SourceRow(_parts(example))

    def close(self) -> None:
        """End before the last row."""
        self.rows.close()


def _with_all_columns(spec: DataSpec, also: tuple[str, ...]) -> DataSpec:
    extra: tuple[Column, ...] = tuple(spec.extra or ())
    if spec.format in TABLES:
        names = spec.columns
        if isinstance(names, tuple):
            double = sorted({name for name in names if names.count(name) > 1})
            if double:
                raise ConfigError(
                    f"{names.count(double[0])} columns are called {double[0]!r}, so their cells "
                    "cannot be distinguished in the result; rename one of them"
                )
        # By number: a column may have no name, or one that looks like a number.
        extra = tuple(range(1, (len(names) if isinstance(names, tuple) else names or 1) + 1))
    else:
        extra = (*extra, *(name for name in also if name not in extra))
    return spec.model_copy(update={"extra": extra})


def _parts(example: Example) -> dict[str, object]:
    """The parts of a row whose format is neither a table nor one object per row."""
    parts: dict[str, object] = {"id": example.id, **example.extra}
    if len(example.texts) == 1:
        text = example.texts[0]
        units = example.target.units if isinstance(example.target, Tagged) else example.units
        parts["text"] = text
        if units:
            parts["words"] = [text[start:end] for start, end in units]
    elif len(example.texts) == 2:
        parts |= {"question": example.texts[0], "context": example.texts[1]}
    else:
        parts |= {"context": example.texts[0], "choices": list(example.texts[1:])}
    return parts
