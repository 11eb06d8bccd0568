"""Files of rows, answered: checked once, answered in order, written behind the rows' columns.

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

from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.resumable_file import GrowingFile
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.reader import LINE_BREAKS, SourceRow
from bertsmith.labeled.read.write import target_value
from bertsmith.runtime.answers import Answerer, Result, prediction_values
from bertsmith.runtime.row_files import RowLines, RowSource, Watch, kind_of
from bertsmith.tasks.prediction import Prediction
from bertsmith.text.blocks import groups

CHUNK = 1_024  # rows between two points that a killed run can resume from
BYTES_PER_TOKEN = 4  # about, in English and in Chinese


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRows:
    """What came out: `resumed` rows were there from a run before; `replaced`: it was discarded.

    `counts` are those of the answerer, over all rows.
    """

    rows: int
    engine: str
    resumed: int
    replaced: bool
    counts: Counter[str]


def answer_file(
    answerer: Answerer[Any],
    source: RowSource,
    out: Path,
    *,
    model: str,
    watch: Watch | None = None,
) -> AnsweredRows:
    """Write the rows with their answers; `model` identifies the model.

    The same call again resumes after the last rows that are safe on disk; the bytes in the end are
    those of a run that was not interrupted.
    """
    lines = RowLines(kind_of(out), answerer, source.columns)
    engine = answerer.settle(source.path.stat().st_size // BYTES_PER_TOKEN)
    made_by = [type(answerer).__name__, model, engine, answerer.settings, CHUNK]
    with GrowingFile(out, source.key(out, made_by), lines.header().encode()) as file:
        counts = Counter(file.state)
        resumed = counts["rows"]
        for chunk in _answered(answerer, source, counts, skip=resumed):
            counts["rows"] += len(chunk)
            file.append(lines.lines(chunk).encode(), counts)
            if watch is not None:
                watch(counts["rows"], source.account.rows_ok)
        file.finish()
    return AnsweredRows(
        rows=counts.pop("rows", 0),
        engine=engine,
        resumed=resumed,
        replaced=file.replaced,
        counts=counts,
    )


def answered_lines(
    answerer: Answerer[Any], source: RowSource, counts: Counter[str]
) -> Iterator[str]:
    """The rows with their answers as JSONL, for a pipe."""
    lines = RowLines("jsonl", answerer, source.columns)
    for chunk in _answered(answerer, source, counts):
        yield lines.lines(chunk)


def _answered(
    answerer: Answerer[Result], source: RowSource, counts: Counter[str], *, skip: int = 0
) -> Iterator[list[tuple[Example, SourceRow, Result | None]]]:
    """Chunks of rows, after the first `skip`, with their answers.

    A chunk is one call of the answerer, wherever a run begins, so what is computed together does
    not depend on it.
    """
    for chunk in groups(islice(source.rows(), skip, None), CHUNK):
        filled = [example for example, _ in chunk if not source.skips(example)]
        answers = iter(answerer.answers(filled, counts) if filled else ())
        yield [
            (example, row, None if source.skips(example) else next(answers))
            for example, row in chunk
        ]


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
            whole = {**row, **prediction_values(prediction)}
            line = json.dumps(whole, ensure_ascii=False).translate(LINE_BREAKS)
            file.write(line.encode("utf-8", "replace") + b"\n")
