"""Predictions for files of rows: read once, predicted in order, written behind the rows' columns.

A run that was killed resumes after the last rows that are safe on disk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from bertsmith.errors import ConfigError, FolderError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.digest import file_digest, json_digest
from bertsmith.files.resumable_file import GrowingFile
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import read_data
from bertsmith.labeled.example import Example
from bertsmith.labeled.guess.columns import OWN_ID
from bertsmith.labeled.read.reader import LINE_BREAKS, OnError, SourceRow, SourceRows
from bertsmith.labeled.read.reject import RowAccount, is_blank
from bertsmith.labeled.read.write import csv_line, target_value, tsv_line
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.predictor import Predictor
from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan, Prediction
from bertsmith.tasks.task import TaskKind
from bertsmith.text.encoding import UnknownTokens
from bertsmith.text.grouping import groups

CHUNK = 1_024  # rows between two points that a killed run can resume from
MOST_COLUMNS = 2_000
BYTES_PER_TOKEN = 4  # about, in English and in Chinese
Watch = Callable[[int, int], None]
"""Called with the number of rows done and of all rows."""
Triple = tuple[Example, SourceRow, Prediction | None]
Kind = Literal["jsonl", "csv", "tsv"]
KINDS: tuple[Kind, ...] = ("jsonl", "csv", "tsv")
OWN = ("prediction", "confidence", "probabilities", "tags", "others", "tokens_cut")
LABELS_JOINED = "|"
SHOWN_OTHERS = 5  # further answers of a question in a line


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSource:
    """A file that was checked: how to read it, how many rows it has, which columns."""

    path: Path
    spec: DataSpec
    on_error: OnError = "stop"
    also: tuple[str, ...] = ()  # columns that the model reads in addition to the texts
    account: RowAccount = field(default_factory=RowAccount)
    columns: tuple[str, ...] = ()
    sha256: str = ""
    skips_empty: bool = False  # rows with an empty text are written without a prediction

    def skips(self, example: Example) -> bool:
        """Whether a row gets no prediction."""
        return self.skips_empty and is_blank(example.texts)

    def rows(self) -> SourceRows:
        """The rows, from the first on."""
        return SourceRows(self.path, self.spec, on_error=self.on_error, also=self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What came out, and by which engine.

    `resumed` rows were there from a run before; `cut` rows were too long.
    """

    rows: int
    unknown: UnknownTokens
    engine: str
    resumed: int
    cut: int
    replaced: bool


def check_source(
    path: Path,
    spec: DataSpec,
    predictor: Predictor,
    *,
    on_error: OnError = "stop",
    every_column: bool = True,
) -> PredictionSource:
    """Read a whole file once, without the model: faults are known before the long work begins.

    A table needs `every_column` of the rows; JSONL only those that are called like its own. Unless
    `spec` says what to do with empty texts, their rows are accepted and get no prediction.
    """
    also = predictor.meta_columns
    skips_empty = spec.empty is None
    if skips_empty:
        spec = spec.model_copy(update={"empty": "keep"})
    rows = SourceRows(path, spec, on_error=on_error, also=also)
    columns: dict[str, None] = {}
    account = rows.rows.account
    for example, row in rows:
        if skips_empty and is_blank(example.texts):
            account.note("empty", f"line {example.line:,}")
        if not columns or (row.raw is not None and (every_column or _may_clash(row.raw))):
            columns |= dict.fromkeys(row.columns)
        if len(columns) > MOST_COLUMNS:
            raise ConfigError(f"{path}: the rows have more than {MOST_COLUMNS:,} different keys")
    return PredictionSource(
        path=path,
        spec=spec,
        on_error=on_error,
        also=also,
        account=account,
        columns=tuple(columns),
        sha256=file_digest(path),
        skips_empty=skips_empty,
    )


def _may_clash(raw: str) -> bool:
    """Whether a row of JSON could have a key that predictions have, too; escapes hide names."""
    return "\\u" in raw or any(name in raw for name in OWN)


def predict_file(
    predictor: Predictor,
    source: PredictionSource,
    out: Path,
    *,
    model: str,
    watch: Watch | None = None,
) -> Predicted:
    """Write the rows with their predictions; `model` identifies the model.

    The same call again resumes after the last rows that are safe on disk; the bytes in the end are
    those of a run that was not interrupted.
    """
    lines = PredictionLines(kind_of(out), predictor.task.kind, source.columns)
    total = source.account.rows_ok
    engine = predictor.settle(source.path.stat().st_size // BYTES_PER_TOKEN)
    key = _key(source, out, f"{model} by {engine}")
    with GrowingFile(out, key, lines.header().encode()) as file:
        counts = Counter(file.state)
        resumed = counts["rows"]
        unknown = UnknownTokens(counts["tokens"], counts["unknown"])
        for chunk in _answered(predictor, source, skip=resumed, unknown=unknown):
            counts["rows"] += len(chunk)
            counts["cut"] += sum(one is not None and one.cut > 0 for _, _, one in chunk)
            counts |= {"tokens": unknown.tokens, "unknown": unknown.unknown}
            file.append(lines.lines(chunk).encode(), counts)
            if watch is not None:
                watch(counts["rows"], total)
        file.finish()
    return Predicted(
        rows=counts["rows"],
        unknown=unknown,
        engine=engine,
        resumed=resumed,
        cut=counts["cut"],
        replaced=file.replaced,
    )


def predicted_lines(
    predictor: Predictor, source: PredictionSource, unknown: UnknownTokens
) -> Iterator[str]:
    """The rows with their predictions as JSONL, for a pipe; `unknown` counts unknown tokens."""
    lines = PredictionLines("jsonl", predictor.task.kind, source.columns)
    for chunk in _answered(predictor, source, unknown=unknown):
        yield lines.lines(chunk)


def _answered(
    predictor: Predictor, source: PredictionSource, *, skip: int = 0, unknown: UnknownTokens
) -> Iterator[list[Triple]]:
    """Chunks of rows, after the first `skip`, with their predictions.

    A chunk is one call of the predictor, wherever a run begins, so what is computed together does
    not depend on it.
    """
    for chunk in groups(islice(source.rows(), skip, None), CHUNK):
        filled = [example for example, _ in chunk if not source.skips(example)]
        answers = predictor.stream(filled, chunk=CHUNK, unknown=unknown)
        yield [
            (example, row, None if source.skips(example) else next(answers)[1])
            for example, row in chunk
        ]


def _key(source: PredictionSource, out: Path, model: str) -> str:
    """What decides the bytes of a result."""
    spec = source.spec.model_copy(update={"why": {}}).to_values()
    return json_digest(
        [source.sha256, spec, source.on_error, kind_of(out), model, CHUNK, source.skips_empty]
    )


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
        self._id = OWN_ID if marked else None  # marks that cells are guarded for spreadsheets
        self._line = csv_line if kind == "csv" else tsv_line

    def header(self) -> str:
        """The first line; JSONL has none."""
        if self.kind == "jsonl":
            return ""
        first = [self._id] if self._id else []
        return self._line([*first, *self._columns, *(self._named[name] for name in self._own)])

    def lines(self, rows: Iterable[Triple]) -> str:
        """The lines of some rows."""
        make = self._object if self.kind == "jsonl" else self._cells
        return "".join(make(*one) for one in rows)

    def _object(self, example: Example, row: SourceRow, prediction: Prediction | None) -> str:
        own = {"prediction": None} if prediction is None else _values(prediction)
        values = {self._named[name]: value for name, value in own.items()}
        added = json.dumps(values, ensure_ascii=False).translate(LINE_BREAKS)
        start = row.json_start()
        return f"{start}{'' if start.endswith('{') else ', '}{added[1:]}\n"

    def _cells(self, example: Example, row: SourceRow, prediction: Prediction | None) -> str:
        first = [example.id] if self._id else []
        own = [""] * len(self._own)
        if prediction is not None:
            values = _values(prediction)
            own = [_cell(name, values.get(name), prediction) for name in self._own]
        parsed = SourceRow(row.columns)  # parsed once
        return self._line([*first, *(parsed.cell(name) for name in self._columns), *own])


def _values(prediction: Prediction) -> dict[str, Any]:
    values = prediction.to_json()
    if prediction.others:
        values["others"] = values["others"][:SHOWN_OTHERS]
        values.pop("probabilities", None)  # the same as those of the others
    return values


def _cell(name: str, value: Any, prediction: Prediction) -> str:
    if name == "prediction":
        return _text(prediction)
    if value is None:
        return "0" if name == "tokens_cut" else ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def _text(prediction: Prediction) -> str:
    """The prediction in one cell."""
    value = prediction.value
    if isinstance(value, PredictedAnswer):
        return value.text
    if isinstance(value, tuple):
        if prediction.tags or any(isinstance(one, PredictedSpan) for one in value):
            return json.dumps(prediction.to_json()["prediction"], ensure_ascii=False)
        return LABELS_JOINED.join(str(one) for one in value)
    return str(value)


def _free(name: str, taken: set[str]) -> str:
    """The name, with a number behind it if a column of the input has that name."""
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def write_labeled(
    path: Path,
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    folds: Sequence[int] = (),
) -> None:
    """Write file, line, id, texts, truth, fold and prediction of each row, atomically."""
    with StagedFile(path) as file:
        for number, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            row: dict[str, Any] = {
                "file": Path(example.source).name,
                "line": example.line,
                "id": example.id,
                "texts": list(example.texts),
            }
            if example.target is not None:
                row["truth"] = target_value(example.target)
            if folds:
                row["fold"] = folds[number]
            whole = {**row, **_values(prediction)}
            line = json.dumps(whole, ensure_ascii=False).translate(LINE_BREAKS)
            file.write(line.encode("utf-8", "replace") + b"\n")


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
