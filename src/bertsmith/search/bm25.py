"""BM25 in the form of Lucene over segments of postings.

A word in tf of N texts' words counts idf * tf / (tf + k1 (1 - b + b length / mean length)), with
idf = ln(1 + (N - df + 0.5) / (df + 0.5)); a word that stands twice in a query counts twice. N, df
and the mean length include deleted rows, as in Lucene before it merges its segments.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75
TERMS = "terms.txt"
POSTINGS, COUNTS, LENGTHS, POSTING_STARTS = (
    "postings.u32",
    "counts.u32",
    "lengths.u32",
    "posting_starts.u64",
)
FILES = (TERMS, POSTINGS, COUNTS, LENGTHS, POSTING_STARTS)

Array = NDArray[Any]


def postings_files(texts: Iterable[Sequence[str]]) -> dict[str, bytes]:
    """Texts as words -> the files of a segment.

    terms.txt has the words in the order of their UTF-8 bytes, one per line; word i is in the rows
    postings[starts[i]:starts[i + 1]], ascending, counts[...] times each.
    """
    rows: dict[str, list[int]] = {}
    counts: dict[str, list[int]] = {}
    lengths: list[int] = []
    for number, words in enumerate(texts):
        lengths.append(len(words))
        for word, count in Counter(words).items():
            rows.setdefault(word, []).append(number)
            counts.setdefault(word, []).append(count)
    terms = sorted(rows, key=str.encode)
    ends = np.cumsum([0, *(len(rows[term]) for term in terms)])
    return {
        TERMS: b"".join(term.encode() + b"\n" for term in terms),
        POSTING_STARTS: ends.astype("<u8").tobytes(),
        POSTINGS: np.array([row for term in terms for row in rows[term]], "<u4").tobytes(),
        COUNTS: np.array([count for term in terms for count in counts[term]], "<u4").tobytes(),
        LENGTHS: np.array(lengths, "<u4").tobytes(),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """The postings of one segment; `first` is the position of its first row."""

    terms: list[bytes]
    starts: Array
    rows: Array
    counts: Array
    lengths: Array
    first: int

    def of(self, term: str) -> tuple[Array, Array]:
        """The rows with a word and how often each has it."""
        wanted = term.encode()
        place = bisect_left(self.terms, wanted)
        if place == len(self.terms) or self.terms[place] != wanted:
            return self.rows[:0], self.counts[:0]
        begin, end = int(self.starts[place]), int(self.starts[place + 1])
        return self.rows[begin:end], self.counts[begin:end]


class Bm25:
    """Scores of queries over all segments."""

    def __init__(self, segments: Sequence[Postings], *, k1: float = K1, b: float = B) -> None:
        self._segments = segments
        self._k1, self._b = k1, b
        self._rows = sum(len(one.lengths) for one in segments)
        words = sum(int(one.lengths.sum(dtype=np.int64)) for one in segments)
        self._mean = words / self._rows if self._rows else 0.0

    def scores(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The score of every row for the words of a query: (N,)."""
        total = np.zeros(self._rows, dtype=np.float32)
        for word, times in Counter(words).items():
            found = [one.of(word) for one in self._segments]
            df = sum(len(rows) for rows, _ in found)
            if not df:
                continue
            idf = math.log(1 + (self._rows - df + 0.5) / (df + 0.5))
            for one, (rows, counts) in zip(self._segments, found, strict=True):
                tf = counts.astype(np.float64)
                share = one.lengths[rows] / self._mean
                part = times * idf * tf / (tf + self._k1 * (1 - self._b + self._b * share))
                total[one.first + rows.astype(np.int64)] += part.astype(np.float32)
        return total

    def best(
        self, words: Sequence[str], k: int, alive: NDArray[np.bool_] | None = None
    ) -> list[tuple[int, float]]:
        """Positions and scores of the k best rows that have a word of the query; ties by row."""
        scores = self.scores(words)
        if alive is not None:
            scores = np.where(alive, scores, 0)
        rows = np.flatnonzero(scores > 0)
        if len(rows) > k:
            border = np.partition(scores[rows], len(rows) - k)[len(rows) - k]
            rows = rows[scores[rows] >= border]
        order = np.lexsort((rows, -scores[rows]))[:k]
        return [(int(row), float(scores[row])) for row in rows[order]]
