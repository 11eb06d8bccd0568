"""A file of rows through a predictor into a file: any size, in order, and a killed run goes on."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from bertsmith.errors import ConfigError
from bertsmith.files.digest import file_digest
from bertsmith.files.resumable_file import GrowingFile
from bertsmith.labeled.account import Account
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.reader import OnError
from bertsmith.labeled.read.source_rows import Kept, KeptRows
from bertsmith.labeled.spec import DataSpec
from bertsmith.runtime.prediction_lines import OWN, PredictionLines, kind_of
from bertsmith.runtime.predictor import Predictor
from bertsmith.tasks.prediction import Prediction

CHUNK = 1_024  # rows between two points that a killed run can go on from
MOST_COLUMNS = 2_000
BYTES_A_TOKEN = 4  # about, in English and in Chinese
Watch = Callable[[int, int], None]
"""Called with the rows that are done and the rows there are."""
Triple = tuple[Example, Kept, Prediction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that was looked over: how to read it, how many rows it has, which columns."""

    path: Path
    spec: DataSpec
    on_error: OnError = "stop"
    also: tuple[str, ...] = ()  # columns that the model reads beside the texts
    account: Account = field(default_factory=Account)
    columns: tuple[str, ...] = ()
    sha256: str = ""

    def rows(self) -> KeptRows:
        """The rows, from the first on."""
        return KeptRows(self.path, self.spec, on_error=self.on_error, also=self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What came out, and by which engine.

    `resumed` rows were there from a run before; `cut` rows were too long.
    """

    rows: int
    engine: str
    resumed: int
    cut: int
    replaced: bool


def look_over(
    path: Path,
    spec: DataSpec,
    predictor: Predictor,
    *,
    on_error: OnError = "stop",
    every_column: bool = True,
) -> Source:
    """Read a whole file once, without the model: faults are known before the long work begins.

    A table needs `every_column` of the rows; JSONL only those that are called like its own.
    """
    also = predictor.meta_columns
    rows = KeptRows(path, spec, on_error=on_error, also=also)
    columns: dict[str, None] = {}
    for _, kept in rows:
        if not columns or (kept.raw is not None and (every_column or _may_clash(kept.raw))):
            columns |= dict.fromkeys(kept.columns)
        if len(columns) > MOST_COLUMNS:
            raise ConfigError(f"{path}: the rows have more than {MOST_COLUMNS:,} different keys")
    return Source(
        path=path,
        spec=spec,
        on_error=on_error,
        also=also,
        account=rows.rows.account,
        columns=tuple(columns),
        sha256=file_digest(path),
    )


def _may_clash(raw: str) -> bool:
    """Whether a row of JSON could have a key that predictions have, too; escapes hide names."""
    return "\\u" in raw or any(name in raw for name in OWN)


def predict_file(
    predictor: Predictor, source: Source, out: Path, *, model: str, watch: Watch | None = None
) -> Predicted:
    """Write the rows with what the model says of them; `model` tells one model from another.

    The same call again goes on after the last rows that are safe on disk; what comes out in the
    end has the same bytes as that of a run that nobody stopped.
    """
    lines = PredictionLines(kind_of(out), predictor.task.kind, source.columns)
    total = source.account.rows_ok
    way = predictor.settle(source.path.stat().st_size // BYTES_A_TOKEN)
    with GrowingFile(out, _key(source, out, f"{model} by {way}")) as file:
        resumed = file.rows
        if not file.rows:
            file.append(lines.header().encode(), 0)
        rows = source.rows()
        for _ in islice(rows, resumed):
            pass
        for chunk in _answered(predictor, rows):
            cut = sum(said.cut > 0 for _, _, said in chunk)
            file.tally["cut"] = file.tally.get("cut", 0) + cut
            file.append(lines.lines(chunk).encode(), len(chunk))
            if watch is not None:
                watch(file.rows, total)
        file.finish()
        return Predicted(
            rows=file.rows,
            engine=way,
            resumed=resumed,
            cut=file.tally.get("cut", 0),
            replaced=file.replaced,
        )


def predicted_lines(predictor: Predictor, source: Source) -> Iterator[str]:
    """The rows with what the model says of them as JSONL, for a pipe."""
    lines = PredictionLines("jsonl", predictor.task.kind, source.columns)
    for chunk in _answered(predictor, source.rows()):
        yield lines.lines(chunk)


def _answered(predictor: Predictor, rows: KeptRows) -> Iterator[list[Triple]]:
    """Chunks of rows with their answers; a chunk is one call of the predictor, wherever a run
    begins, so what is computed together does not depend on it."""
    waiting: deque[Kept] = deque()

    def examples() -> Iterator[Example]:
        for example, kept in islice(rows, CHUNK):
            waiting.append(kept)
            yield example

    while True:
        said = list(predictor.stream(examples(), chunk=CHUNK))
        if not said:
            return
        yield [(example, waiting.popleft(), answer) for example, answer in said]


def _key(source: Source, out: Path, model: str) -> str:
    """What decides the bytes of a result."""
    parts = (source.sha256, source.spec.to_json(), source.on_error, kind_of(out), model, str(CHUNK))
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
