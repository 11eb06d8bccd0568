"""Text written for files of rows: any size, in order, resumed after the last rows that are safe."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from bertsmith.files.resumable_file import GrowingFile
from bertsmith.labeled.example import Example
from bertsmith.labeled.read.reader import SourceRow
from bertsmith.runtime.generation.generator import Source, TextGenerator
from bertsmith.runtime.generation.options import Generated, GenerationOptions
from bertsmith.runtime.row_files import Kind, RowLines, RowSource, Watch, kind_of
from bertsmith.text.blocks import groups

CHUNK = 1_024  # rows between two points that a killed run can resume from
OWN = ("generated", "stopped", "tokens", "score", "answers")
Triple = tuple[Example, SourceRow, Generated | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedRows:
    """What came out; `resumed` rows were there from a run before, `stopped` counts the reasons."""

    rows: int
    resumed: int
    replaced: bool
    stopped: dict[str, int]


class GeneratedLines(RowLines[Generated]):
    """Rows with the text written for them; `scores` adds those of the answers."""

    def __init__(self, kind: Kind, columns: Sequence[str], *, scores: bool) -> None:
        self._scores = scores
        shown = ("generated", "stopped", "tokens", *(("score",) if scores else ()), "answers")
        super().__init__(kind, OWN, shown, columns)

    def values(self, result: Generated | None) -> dict[str, Any]:
        """The best answer, and all of them where there are several."""
        if result is None:
            return {"generated": None}
        best, *others = (self._answer(one.to_json()) for one in result.answers)
        values = {"generated": best.pop("text"), **best}
        return (
            {**values, "answers": [answer.text for answer in result.answers]} if others else values
        )

    def cell(self, name: str, result: Generated) -> str:
        """One column of a table."""
        value = self.values(result).get(name, "")
        return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)

    def _answer(self, values: dict[str, Any]) -> dict[str, Any]:
        if not self._scores:
            del values["score"]
        return values


def generate_file(
    generator: TextGenerator,
    source: RowSource,
    out: Path,
    options: GenerationOptions,
    *,
    model: str,
    scores: bool = False,
    watch: Watch | None = None,
) -> GeneratedRows:
    """Write the rows with what is generated for them; `model` identifies the model.

    The same call again resumes after the last rows that are safe on disk; the bytes in the end are
    those of a run that was not interrupted.
    """
    generator.plan(options)  # options that cannot be are refused before the work
    lines = GeneratedLines(kind_of(out), source.columns, scores=scores)
    key = source.key(out, [model, asdict(options), scores, CHUNK])
    with GrowingFile(out, key, lines.header().encode()) as file:
        counts = Counter(file.state)
        resumed = counts["rows"]
        for chunk in _chunks(generator, source, options, skip=resumed):
            counts["rows"] += len(chunk)
            counts.update(one.stopped for _, _, one in chunk if one is not None)
            file.append(lines.lines(chunk).encode(), counts)
            if watch is not None:
                watch(counts["rows"], source.account.rows_ok)
        file.finish()
    stopped = {name: count for name, count in counts.items() if name != "rows"}
    return GeneratedRows(
        rows=counts["rows"], resumed=resumed, replaced=file.replaced, stopped=stopped
    )


def generated_lines(
    generator: TextGenerator, source: RowSource, options: GenerationOptions, *, scores: bool = False
) -> Iterator[str]:
    """The rows with what is generated for them as JSONL, for a pipe."""
    lines = GeneratedLines("jsonl", source.columns, scores=scores)
    for chunk in _chunks(generator, source, options):
        yield lines.lines(chunk)


def _chunks(
    generator: TextGenerator, source: RowSource, options: GenerationOptions, *, skip: int = 0
) -> Iterator[list[Triple]]:
    """Chunks of rows, after the first `skip`, with their answers.

    What is computed together does not depend on where a run begins.
    """
    for chunk in groups(islice(source.rows(), skip, None), CHUNK):
        sources = [
            Source(example.texts[0], f"{source.path}, line {example.line:,}")
            for example, _ in chunk
            if not source.skips(example)
        ]
        answers = generator.each(sources, options)
        yield [
            (example, row, None if source.skips(example) else next(answers))
            for example, row in chunk
        ]
