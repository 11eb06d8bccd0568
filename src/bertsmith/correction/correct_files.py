"""Corrections of files of rows: any size, in order, resumed after the last rows that are safe."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bertsmith.files.resumable_file import GrowingFile
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.reader import SourceRow
from bertsmith.runtime.corrector import Corrector
from bertsmith.runtime.row_files import Kind, RowLines, RowSource, Watch, kind_of
from bertsmith.tasks.spelling.edits import CorrectedText
from bertsmith.text.blocks import groups

CHUNK = 512  # rows between two points that a killed run can resume from
OWN_CORRECTED = ("corrected", "edits")
CorrectedRow = tuple[Example, SourceRow, CorrectedText | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRows:
    """What came out; `resumed` rows were there from a run before."""

    rows: int
    changed: int
    edits: int
    resumed: int
    replaced: bool


class CorrectedLines(RowLines[CorrectedText]):
    """Rows with their corrected text and its edits."""

    def __init__(self, kind: Kind, columns: Sequence[str]) -> None:
        super().__init__(kind, OWN_CORRECTED, OWN_CORRECTED, columns)

    def values(self, result: CorrectedText | None) -> dict[str, Any]:
        """The corrected text and the edits; an empty text has none."""
        if result is None:
            return {"corrected": None, "edits": []}
        return {"corrected": result.corrected, "edits": [one.to_json() for one in result.edits]}

    def cell(self, name: str, result: CorrectedText) -> str:
        """One column of a table."""
        value = self.values(result)[name]
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)


def correct_file(
    corrector: Corrector,
    source: RowSource,
    out: Path,
    *,
    model: str,
    threshold: float,
    watch: Watch | None = None,
) -> CorrectedRows:
    """Write the rows with their corrections; the same call again resumes."""
    lines = CorrectedLines(kind_of(out), source.columns)
    key = source.key(out, [model, threshold, CHUNK])
    with GrowingFile(out, key, lines.header().encode()) as file:
        counts = Counter(file.state)
        resumed = counts["rows"]
        for chunk in _chunks(corrector, source, threshold, skip=resumed):
            done = [one for _, _, one in chunk if one is not None]
            counts["rows"] += len(chunk)
            counts["changed"] += sum(bool(one.edits) for one in done)
            counts["edits"] += sum(len(one.edits) for one in done)
            file.append(lines.lines(chunk).encode(), counts)
            if watch is not None:
                watch(counts["rows"], source.account.rows_ok)
        file.finish()
    return CorrectedRows(
        rows=counts["rows"],
        changed=counts["changed"],
        edits=counts["edits"],
        resumed=resumed,
        replaced=file.replaced,
    )


def corrected_lines(corrector: Corrector, source: RowSource, *, threshold: float) -> Iterator[str]:
    """The rows with their corrections as JSONL, for a pipe."""
    lines = CorrectedLines("jsonl", source.columns)
    for chunk in _chunks(corrector, source, threshold):
        yield lines.lines(chunk)


def _chunks(
    corrector: Corrector, source: RowSource, threshold: float, *, skip: int = 0
) -> Iterator[list[CorrectedRow]]:
    for chunk in groups(islice(source.rows(), skip, None), CHUNK):
        texts = [example.texts[0] for example, _ in chunk if not source.skips(example)]
        found = iter(corrector.correct(texts, threshold=threshold))
        yield [
            (example, row, None if source.skips(example) else next(found)) for example, row in chunk
        ]
