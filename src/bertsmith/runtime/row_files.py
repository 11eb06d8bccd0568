"""Rows of a file and the answers to them: checked first, then written behind their columns.

JSONL keeps every row as it is and adds keys; CSV and TSV keep the cells and add columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal

from pydantic import ValidationError

from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.digest import file_digest, json_digest
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import read_data
from bertsmith.labeled.example import Example
from bertsmith.labeled.guess.columns import OWN_ID
from bertsmith.labeled.read.reader import LINE_BREAKS, OnError, SourceRow, SourceRows
from bertsmith.labeled.read.reject import RowAccount, is_blank
from bertsmith.labeled.read.write import csv_line, tsv_line
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.answers import Answerer, Result

MOST_COLUMNS = 2_000
Watch = Callable[[int, int], None]
"""Called with the number of rows done and of all rows."""
Kind = Literal["jsonl", "csv", "tsv"]
KINDS: tuple[Kind, ...] = ("jsonl", "csv", "tsv")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSource:
    """A file that was checked: how to read it, how many rows it has, which columns."""

    path: Path
    spec: DataSpec
    on_error: OnError = "stop"
    also: tuple[str, ...] = ()  # columns that the model reads in addition to the texts
    account: RowAccount = field(default_factory=RowAccount)
    columns: tuple[str, ...] = ()
    sha256: str = ""
    skips_empty: bool = False  # rows with an empty text are written without a result

    def skips(self, example: Example) -> bool:
        """Whether a row gets no result."""
        return self.skips_empty and is_blank(example.texts)

    def rows(self) -> SourceRows:
        """The rows, from the first on."""
        return SourceRows(self.path, self.spec, on_error=self.on_error, also=self.also)

    def key(self, out: Path, made_by: Sequence[object]) -> str:
        """What decides the bytes of a result at `out`: the rows, and what it is `made_by`."""
        spec = self.spec.model_copy(update={"why": {}}).to_values()
        return json_digest(
            [self.sha256, spec, self.on_error, kind_of(out), *made_by, self.skips_empty]
        )


def check_rows(
    path: Path,
    spec: DataSpec,
    answerer: Answerer[Any],
    *,
    on_error: OnError = "stop",
    every_column: bool = True,
) -> RowSource:
    """Read a whole file once, without the model: faults are known before the long work begins.

    A table needs `every_column` of the rows; JSONL only those that are called like one of the
    answerer's. Unless `spec` says what to do with empty texts, their rows are accepted and get
    no result.
    """
    skips_empty = spec.empty is None
    if skips_empty:
        spec = spec.model_copy(update={"empty": "keep"})
    also = answerer.reads
    rows = SourceRows(path, spec, on_error=on_error, also=also)
    columns: dict[str, None] = {}
    account = rows.rows.account
    for example, row in rows:
        if skips_empty and is_blank(example.texts):
            account.note("empty", f"line {example.line:,}")
        if not columns or (
            row.raw is not None and (every_column or _may_clash(row.raw, answerer.columns))
        ):
            columns |= dict.fromkeys(row.columns)
        if len(columns) > MOST_COLUMNS:
            raise ConfigError(f"{path}: the rows have more than {MOST_COLUMNS:,} different keys")
    return RowSource(
        path=path,
        spec=spec,
        on_error=on_error,
        also=also,
        account=account,
        columns=tuple(columns),
        sha256=file_digest(path),
        skips_empty=skips_empty,
    )


def _may_clash(raw: str, own: Sequence[str]) -> bool:
    """Whether a row of JSON could have a key that results have, too; escapes hide names."""
    return "\\u" in raw or any(name in raw for name in own)


def kind_of(path: Path) -> Kind:
    """What the name of a result ends in."""
    for kind in KINDS:
        if path.name.lower().endswith(f".{kind}"):
            return kind
    raise ConfigError(f"{path}: results are written to .jsonl, .csv or .tsv; name it so")


class RowLines(Generic[Result]):
    """Lines of one file of answers; `columns` are those of the input, in order, for tables."""

    def __init__(self, kind: Kind, answerer: Answerer[Result], columns: Sequence[str]) -> None:
        self.kind = kind
        self._answerer = answerer
        taken = set(columns)
        self._named = {name: _free(name, taken) for name in answerer.columns}
        marked = kind == "csv" and OWN_ID not in taken
        self._columns = tuple(columns)
        self._id = OWN_ID if marked else None  # marks that cells are guarded for spreadsheets
        self._line = csv_line if kind == "csv" else tsv_line

    def header(self) -> str:
        """The first line; JSONL has none."""
        if self.kind == "jsonl":
            return ""
        first = [self._id] if self._id else []
        return self._line(
            [*first, *self._columns, *(self._named[name] for name in self._answerer.shown)]
        )

    def lines(self, rows: Iterable[tuple[Example, SourceRow, Result | None]]) -> str:
        """The lines of some rows."""
        make = self._object if self.kind == "jsonl" else self._cells
        return "".join(make(*one) for one in rows)

    def _object(self, example: Example, row: SourceRow, result: Result | None) -> str:
        values = {self._named[name]: value for name, value in self._answerer.row(result).items()}
        added = json.dumps(values, ensure_ascii=False).translate(LINE_BREAKS)
        start = row.json_start()
        return f"{start}{'' if start.endswith('{') else ', '}{added[1:]}\n"

    def _cells(self, example: Example, row: SourceRow, result: Result | None) -> str:
        first = [example.id] if self._id else []
        own = [""] * len(self._answerer.shown)
        if result is not None:
            own = [self._answerer.cell(name, result) for name in self._answerer.shown]
        parsed = SourceRow(row.columns)  # parsed once
        return self._line([*first, *(parsed.cell(name) for name in self._columns), *own])


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if a column of the input has that name."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def trained_spec(folder: Path) -> DataSpec | None:
    """The data spec that a fine-tuned model was trained with; None if it is not recorded."""
    section = read_data(Folder.at(folder))
    try:
        return None if section is None else DataSpec.from_values(section)
    except ValidationError as fault:
        raise FolderError(
            f"{folder / 'bertsmith.json'}: data is not a data spec ({fault.errors()[0]['msg']}); "
            "remove the section, and name the columns with --text"
        ) from fault
