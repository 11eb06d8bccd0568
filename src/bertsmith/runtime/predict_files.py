"""Predictions for files of rows: read once, predicted in order, written behind the rows' columns.

A run that was killed resumes after the last rows that are safe on disk.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bertsmith.errors import FolderError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.resumable_file import GrowingFile
from bertsmith.files.safe_folder import Folder
from bertsmith.folders.extras import read_data
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.reader import LINE_BREAKS, OnError, SourceRow
from bertsmith.labeled.read.write import target_value
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.predictor import Predictor
from bertsmith.runtime.row_files import Kind, RowLines, RowSource, Watch, check_rows, kind_of
from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan, Prediction
from bertsmith.tasks.task import TaskKind
from bertsmith.text.blocks import groups
from bertsmith.text.encoding import UnknownTokens

CHUNK = 1_024  # rows between two points that a killed run can resume from
BYTES_PER_TOKEN = 4  # about, in English and in Chinese
Triple = tuple[Example, SourceRow, Prediction | None]
OWN = ("prediction", "confidence", "probabilities", "tags", "others", "tokens_cut")
LABELS_JOINED = "|"
SHOWN_OTHERS = 5  # further answers of a question in a line


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
) -> RowSource:
    """The rows of a file for a predictor, read once without the model; see `check_rows`."""
    return check_rows(
        path,
        spec,
        OWN,
        also=predictor.meta_columns,
        on_error=on_error,
        every_column=every_column,
    )


def predict_file(
    predictor: Predictor,
    source: RowSource,
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
    key = source.key(out, [f"{model} by {engine}", CHUNK])
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
    predictor: Predictor, source: RowSource, unknown: UnknownTokens
) -> Iterator[str]:
    """The rows with their predictions as JSONL, for a pipe; `unknown` counts unknown tokens."""
    lines = PredictionLines("jsonl", predictor.task.kind, source.columns)
    for chunk in _answered(predictor, source, unknown=unknown):
        yield lines.lines(chunk)


def _answered(
    predictor: Predictor, source: RowSource, *, skip: int = 0, unknown: UnknownTokens
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


class PredictionLines(RowLines[Prediction]):
    """Lines of one result; `columns` are those of the input, in order, for tables."""

    def __init__(self, kind: Kind, task: TaskKind, columns: Sequence[str]) -> None:
        super().__init__(kind, OWN, task.columns, columns)

    def values(self, result: Prediction | None) -> dict[str, Any]:
        """A prediction as JSON."""
        return {"prediction": None} if result is None else _values(result)

    def cell(self, name: str, result: Prediction) -> str:
        """One column of a table."""
        return _cell(name, _values(result).get(name), result)


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
