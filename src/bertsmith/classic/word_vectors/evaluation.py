"""Word vectors against published tests: similarities rated by people, and analogies.

A similarity file has two words and a rating per line (WS-353, MEN, SimLex-999, MTurk, as published:
with or without a header, further columns, commas, tabs or spaces). An analogy file has four words
per line, a : b = c : d, in sections that begin with ": name".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.word_vectors.word_vectors import WordVectors
from bertsmith.errors import InputFileError
from bertsmith.files.lines import text_lines
from bertsmith.metrics.correlation import spearman
from bertsmith.wording import shown

Numbers = NDArray[np.int64]
_TOGETHER = 512  # analogies solved at a time
_TAGGED = re.compile(r"-[nvj]$")  # "sun-n" of MEN's lemma form


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPairs:
    """Pairs of words with ratings; `name` is that of the file."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    ratings: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalogySection:
    """Questions a : b = c : d of one kind."""

    name: str
    questions: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityResult:
    """Spearman's correlation over the pairs of which both words are known; nan below two pairs."""

    name: str
    spearman: float
    pairs: int
    known: int

    @property
    def coverage(self) -> float:
        """The share of pairs that count."""
        return self.known / self.pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalogyResult:
    """Right answers among the questions whose four words are known."""

    name: str
    right: int
    known: int
    questions: int

    @property
    def accuracy(self) -> float:
        """The share of known questions answered rightly; nan if none is known."""
        return self.right / self.known if self.known else float("nan")

    @property
    def coverage(self) -> float:
        """The share of questions that count."""
        return self.known / self.questions if self.questions else float("nan")


def read_similarity(path: Path) -> RatedPairs:
    """A similarity file; the rating is the first number from the third column on."""
    pairs: list[tuple[str, str]] = []
    ratings: list[float] = []
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = _fields(line)
        rating = next(
            (value for field in fields[2:] if (value := _number(field)) is not None), None
        )
        if rating is None or not fields[0] or not fields[1]:
            if number == 1:  # the names of the columns
                continue
            raise InputFileError(
                f"{path}, line {number}: {shown(line)}; expected two words and a rating, parted by "
                "tabs, commas or spaces"
            )
        pairs.append((_word(fields[0]), _word(fields[1])))
        ratings.append(rating)
    if not pairs:
        raise InputFileError(f"{path} holds no pair of words with a rating")
    return RatedPairs(name=path.name, pairs=tuple(pairs), ratings=tuple(ratings))


def read_analogies(path: Path) -> list[AnalogySection]:
    """The sections of an analogy file in their order; those without a question are left out."""
    sections: list[tuple[str, list[tuple[str, str, str, str]]]] = []
    for number, line in enumerate(text_lines(path), start=1):
        fields = line.split()
        if not fields or line.startswith(("#", "//")):
            continue
        if fields[0].startswith(":"):
            sections.append((line.strip().lstrip(":").strip(), []))
            continue
        if len(fields) != 4:
            raise InputFileError(
                f"{path}, line {number}: {len(fields)} words in {shown(line)}; an analogy has "
                'four, and a section begins with ": name"'
            )
        if not sections:
            sections.append((path.stem, []))
        sections[-1][1].append((fields[0], fields[1], fields[2], fields[3]))
    found = [AnalogySection(name=name, questions=tuple(rows)) for name, rows in sections if rows]
    if not found:
        raise InputFileError(f"{path} holds no analogy of four words")
    return found


def is_analogy_file(path: Path) -> bool:
    """Whether a file begins with a section, or with lines of four words and no rating."""
    lines = (line for line in text_lines(path) if line.strip() and not line.startswith(("#", "//")))
    first = list(islice(lines, 2))  # the first may name columns
    if first and first[0].startswith(":"):
        return True
    rated = any(_number(field) is not None for line in first for field in _fields(line)[2:])
    return not rated and any(len(line.split()) == 4 for line in first)


def evaluate_similarity(vectors: WordVectors, rated: RatedPairs) -> SimilarityResult:
    """Spearman's correlation of cosines with ratings; a word is also looked up in lower case."""
    find = _finder(vectors, len(vectors))
    rows = np.array([(find(a), find(b)) for a, b in rated.pairs], dtype=np.int64)  # (P, 2)
    known = (rows >= 0).all(axis=1)
    rho = float("nan")
    if known.sum() > 1:
        first, second = vectors.unit[rows[known, 0]], vectors.unit[rows[known, 1]]
        cosines = np.einsum("pd,pd->p", first, second, dtype=np.float64)
        rho = spearman(np.array(rated.ratings)[known], cosines)
    return SimilarityResult(
        name=rated.name, spearman=rho, pairs=len(rated.pairs), known=int(known.sum())
    )


def evaluate_analogies(
    vectors: WordVectors, sections: Sequence[AnalogySection], *, most: int | None = None
) -> list[AnalogyResult]:
    """Accuracy by section (3CosAdd); questions and answers among the first `most` words only."""
    size = len(vectors) if most is None else min(most, len(vectors))
    find = _finder(vectors, size)
    unit = vectors.unit[:size]
    results = []
    for section in sections:
        rows = np.array([[find(word) for word in row] for row in section.questions])  # (Q, 4)
        rows = rows[(rows >= 0).all(axis=1)]
        right = sum(
            _right(unit, rows[at : at + _TOGETHER]) for at in range(0, len(rows), _TOGETHER)
        )
        results.append(
            AnalogyResult(
                name=section.name, right=right, known=len(rows), questions=len(section.questions)
            )
        )
    return results


def total_analogies(results: Sequence[AnalogyResult], name: str = "all") -> AnalogyResult:
    """All sections as one."""
    return AnalogyResult(
        name=name,
        right=sum(one.right for one in results),
        known=sum(one.known for one in results),
        questions=sum(one.questions for one in results),
    )


def _right(unit: NDArray[np.float32], rows: Numbers) -> int:
    """How many of the questions (Q, 4) have their fourth word as the best answer."""
    a, b, c = unit[rows[:, 0]], unit[rows[:, 1]], unit[rows[:, 2]]
    scores = (b - a + c) @ unit.T  # (Q, V)
    np.put_along_axis(scores, rows[:, :3], -np.inf, axis=1)
    return int((scores.argmax(axis=1) == rows[:, 3]).sum())


def _finder(vectors: WordVectors, size: int) -> Callable[[str], int]:
    """The row of a word below `size`, as written or in lower case; -1 if there is none."""

    def find(word: str) -> int:
        number = vectors.index.get(word, -1)
        if number < 0:
            number = vectors.index.get(word.lower(), -1)
        return number if number < size else -1

    return find


def _fields(line: str) -> list[str]:
    separator = next((mark for mark in ("\t", ",", ";") if mark in line), None)
    return [field.strip() for field in line.split(separator)] + ["", ""]


def _number(field: str) -> float | None:
    try:
        value = float(field)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _word(field: str) -> str:
    """A word without the part of speech that MEN's lemma form puts behind it."""
    return _TAGGED.sub("", field)
