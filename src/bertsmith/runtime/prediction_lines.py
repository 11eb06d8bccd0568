"""What a model says of a row, as a line of JSONL, CSV or TSV behind the row's own columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example
from bertsmith.labeled.guess.column_names import OWN_ID
from bertsmith.labeled.read.source_rows import LINE_BREAKS, Kept
from bertsmith.labeled.read.write import csv_line, tsv_line
from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan, Prediction
from bertsmith.tasks.task import TaskKind

Kind = Literal["jsonl", "csv", "tsv"]
KINDS: tuple[Kind, ...] = ("jsonl", "csv", "tsv")
OWN = ("prediction", "confidence", "probabilities", "tags", "others", "tokens_cut")
LABELS_JOINED = "|"
SHOWN_OTHERS = 5  # further answers of a question that a line holds


def kind_of(path: Path) -> Kind:
    """What the name of a result ends in."""
    for kind in KINDS:
        if path.name.lower().endswith(f".{kind}"):
            return kind
    raise ConfigError(f"{path}: predictions are written to .jsonl, .csv or .tsv; name it so")


class PredictionLines:
    """Lines of one result; `columns` are those of the input, in order, for tables."""

    def __init__(self, kind: Kind, task: TaskKind, columns: Sequence[str]) -> None:
        self.kind = kind
        self._own = task.columns
        taken = set(columns)
        self._named = {name: _free(name, taken) for name in OWN}
        marked = kind == "csv" and OWN_ID not in taken
        self._columns = tuple(columns)
        self._id = OWN_ID if marked else None  # it says that cells are guarded for spreadsheets
        self._line = csv_line if kind == "csv" else tsv_line

    def header(self) -> str:
        """The first line; JSONL has none."""
        if self.kind == "jsonl":
            return ""
        first = [self._id] if self._id else []
        return self._line([*first, *self._columns, *(self._named[name] for name in self._own)])

    def lines(self, rows: Iterable[tuple[Example, Kept, Prediction]]) -> str:
        """The lines of some rows."""
        make = self._object if self.kind == "jsonl" else self._cells
        return "".join(make(*row) for row in rows)

    def _object(self, example: Example, kept: Kept, said: Prediction) -> str:
        told = {self._named[name]: value for name, value in _told(said).items()}
        added = json.dumps(told, ensure_ascii=False).translate(LINE_BREAKS)
        start = kept.json_start()
        return f"{start}{'' if start.endswith('{') else ', '}{added[1:]}\n"

    def _cells(self, example: Example, kept: Kept, said: Prediction) -> str:
        told = _told(said)
        first = [example.id] if self._id else []
        own = [_cell(name, told.get(name), said) for name in self._own]
        columns = kept.columns
        given = Kept(columns)  # parsed once
        return self._line([*first, *(given.cell(name) for name in self._columns), *own])


def _told(said: Prediction) -> dict[str, Any]:
    told = said.to_json()
    if said.others:
        told["others"] = told["others"][:SHOWN_OTHERS]
        told.pop("probabilities", None)  # by text, and so told twice
    return told


def _cell(name: str, value: Any, said: Prediction) -> str:
    if name == "prediction":
        return _value(said)
    if value is None:
        return "0" if name == "tokens_cut" else ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _value(said: Prediction) -> str:
    """The answer in one cell."""
    value = said.value
    if isinstance(value, PredictedAnswer):
        return value.text
    if isinstance(value, tuple):
        if said.tags or any(isinstance(one, PredictedSpan) for one in value):
            return json.dumps(said.to_json()["prediction"], ensure_ascii=False)
        return LABELS_JOINED.join(str(one) for one in value)
    return str(value)


def _free(name: str, taken: set[str]) -> str:
    """The name, or with a number behind it if a column of the input is called so."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
