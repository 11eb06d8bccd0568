"""Parts of a corpus and the special tokens around them, put together as rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.plans.plan import Plan, spread
from bertsmith.corpus.rows import Longs, RowsBatch
from bertsmith.corpus.view import TokenFiles
from bertsmith.errors import ConfigError
from bertsmith.random_keys import Words
from bertsmith.text.template import Frame, Marks
from bertsmith.text.tokenizer import Tokenizer


class Assembly:
    """Writes `[CLS] A [SEP] B [SEP]`, or `[CLS] A [SEP] more [SEP]`, as the tokenizer would."""

    def __init__(self, files: TokenFiles, *, paired: bool) -> None:
        self._files = files
        tokenizer = files.tokenizer()
        frame = frame_of(tokenizer, 2 if paired else 1)
        self._before, self._after = frame.gaps[0], frame.gaps[-1]
        self._segments = frame.segments
        if paired:
            self._between: Marks = frame.gaps[1]
        else:
            sep = tokenizer.special.sep
            self._between = () if sep is None else ((sep, frame.segments[0]),)
            self._segments = (frame.segments[0], frame.segments[0])
        self.specials = frame.specials

    def lengths(self, plan: Plan, numbers: Longs) -> Longs:
        """(B,) rows of each example."""
        counts = plan.first[numbers + 1] - plan.first[numbers]
        around = len(self._before) + len(self._after)
        lengths: Longs = plan.tokens(numbers) + around + (counts - 1) * len(self._between)
        return lengths

    def rows(self, plan: Plan, numbers: Longs, keys: Words) -> RowsBatch:
        """The examples of a plan, gathered from the corpus in one go."""
        parts, counts = plan.parts(numbers)
        ends = np.cumsum(counts)
        first = np.zeros(len(parts), dtype=bool)
        last = np.zeros(len(parts), dtype=bool)
        first[ends - counts] = True
        last[ends - 1] = True
        sizes = plan.stops[parts] - plan.starts[parts]
        before = np.where(first, len(self._before), len(self._between))
        blocks = before + sizes + last * len(self._after)
        stops = np.cumsum(blocks)
        begin = stops - blocks  # the first row of each part and its special tokens
        rows = int(stops[-1]) if len(stops) else 0
        here = spread(begin + before, sizes)
        there = spread(plan.starts[parts], sizes)
        ids = np.zeros(rows, dtype=np.int32)
        ids[here] = self._files.tokens[there]
        segments = np.zeros(rows, dtype=np.int32)
        if any(self._segments):
            segments[here] = np.repeat(np.where(first, *self._segments), sizes)
        for at, marks in (
            (begin[first], self._before),
            (begin[~first], self._between),
            (stops[last] - len(self._after), self._after),
        ):
            for place, (mark, segment) in enumerate(marks):
                ids[at + place], segments[at + place] = mark, segment
        return RowsBatch(
            ids=ids,
            segments=segments,
            words=self._words(rows, here, there, sizes),
            lengths=tuple(np.add.reduceat(blocks, ends - counts).tolist()) if rows else (),
            keys=keys,
            pair_labels=None if plan.labels is None else plan.labels[numbers],
        )

    def _words(self, rows: int, here: Longs, there: Longs, sizes: Longs) -> NDArray[np.int32]:
        """Word numbers, a new one at the start of every part, -1 at special tokens."""
        starts = self._files.starts_word[there] != 0
        starts[np.cumsum(sizes)[sizes > 0] - sizes[sizes > 0]] = True
        words = np.full(rows, -1, dtype=np.int32)
        words[here] = np.cumsum(starts, dtype=np.int32) - np.int32(1)
        return words


def frame_of(tokenizer: Tokenizer, fields: int) -> Frame:
    """The special tokens a tokenizer puts around so many fields."""
    encoding = tokenizer.encode_fields(["a"] * fields)
    gaps: list[list[tuple[int, int]]] = [[]]
    segments: list[int] = []
    seen = -1
    rows = zip(
        encoding.fields.tolist(), encoding.ids.tolist(), encoding.segments.tolist(), strict=True
    )
    for field, number, segment in rows:
        if field < 0:
            gaps[-1].append((number, segment))
        elif field > seen:
            seen = field
            segments.append(segment)
            gaps.append([])
    if len(segments) != fields:
        raise ConfigError("the tokenizer makes nothing of the letter a, so texts cannot be framed")
    return Frame(tuple(tuple(gap) for gap in gaps), tuple(segments))
