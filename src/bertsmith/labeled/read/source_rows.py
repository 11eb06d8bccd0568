"""Source rows with all their columns, so that predictions can be appended."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.json_documents import LARGEST_DOCUMENT, JsonDocument
from bertsmith.files.strict_json import parse_row
from bertsmith.labeled.example import Example, Tagged
from bertsmith.labeled.formats.objects import plain
from bertsmith.labeled.read.reader import Examples, OnError, read_examples
from bertsmith.labeled.read.reject import row_lines
from bertsmith.labeled.read.rejects_file import original
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
        self._raw = _Raw(path, self.spec) if self.spec.format in OBJECTS else None

    def __next__(self) -> tuple[Example, SourceRow]:
        example = next(self.rows)
        if self.spec.delimiter == "\n":  # whole lines: a column without a name
            return example, SourceRow({"text": example.texts[0]})
        if self.spec.format in TABLES:
            return example, SourceRow(example.extra)
        if self._raw is not None:
            # Rows are counted as they come, rejected ones too: that is the number of this one.
            return example, SourceRow({}, self._raw.row(self.rows.account.rows_in))
        return example, SourceRow(_parts(example))

    def close(self) -> None:
        """End before the last row."""
        self.rows.close()
        if self._raw is not None:
            self._raw.close()


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
    """The parts of a row whose format is neither a table nor one object a row."""
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


class _Raw:
    """The JSON objects of a file as they are written, by their number from 1."""

    def __init__(self, path: Path, spec: DataSpec) -> None:
        self._lines = row_lines(path, spec.encoding)
        self._rows = self._listed() if self._lines.first_character() == "[" else self._lined(path)
        self._number = 0

    def row(self, number: int) -> str:
        """The row of a number; numbers must rise from call to call."""
        raw = ""
        while self._number < number:
            raw = next(self._rows)
            self._number += 1
        return raw

    def close(self) -> None:
        """Close the file."""
        self._lines.close()

    def _listed(self) -> Iterator[str]:
        document = JsonDocument(self._lines.whole(LARGEST_DOCUMENT), self._lines.name)
        for start, end, _ in document.elements():
            yield document.text[start:end]

    def _lined(self, path: Path) -> Iterator[str]:
        rejected = original(path) is not None
        for line in self._lines:
            if not isinstance(line, str):
                yield ""  # a row that was rejected
            elif line and not line.isspace():
                yield str(parse_row(line).get("raw", "")) if rejected else line
