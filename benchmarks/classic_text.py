"""Reviews as lines of words, a closed vocabulary, and a plain Kneser-Ney model to compare with."""

from __future__ import annotations

import csv
import gzip
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
SENTENCE_END = re.compile(r"[.!?\n]")
UNKNOWN = "<unk>"
Line = list[str]


@dataclass(frozen=True)
class Documents:
    """Lines of words, and the first line of each document."""

    lines: list[Line]
    documents: list[int]

    def write(self, path: Path) -> None:
        """One sentence per line, a blank line between documents."""
        starts = set(self.documents[1:])
        with path.open("w", encoding="utf-8") as file:
            for number, line in enumerate(self.lines):
                file.write("\n" * (number in starts) + " ".join(line) + "\n")


def reviews(data: Path, *sizes: int) -> list[Documents]:
    """Neighboring parts of IMDb's reviews of at least so many words each, whole lines."""
    csv.field_size_limit(1 << 30)
    parts = [Documents([], [0])]
    words = 0
    with gzip.open(data / "imdb/IMDB_Dataset.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            first = True
            for sentence in SENTENCE_END.split(row["review"].replace("<br />", "\n").lower()):
                line = WORD.findall(sentence)
                if not line:
                    continue
                part = parts[-1]
                if first and part.lines:
                    part.documents.append(len(part.lines))
                first = False
                part.lines.append(line)
                words += len(line)
                if words >= sizes[len(parts) - 1]:
                    if len(parts) == len(sizes):
                        return parts
                    parts.append(Documents([], [0]))
                    words = 0
    raise SystemExit(f"{data} has too few reviews")


@dataclass(frozen=True)
class ClosedWords:
    """A part as ids of the most frequent words; all others are one unknown word, id 0."""

    ids: np.ndarray
    starts: np.ndarray
    documents: np.ndarray
    words: tuple[str, ...]
    counts: np.ndarray

    @property
    def lines(self) -> list[np.ndarray]:
        """The lines as arrays."""
        return np.split(self.ids, self.starts[1:-1])


def closed_vocabulary(lines: Sequence[Line], size: int) -> tuple[str, ...]:
    """The unknown word and the most frequent ones, `size` in all."""
    counts = Counter(word for line in lines for word in line)
    return (UNKNOWN, *(word for word, _ in counts.most_common(size - 1)))


def closed(part: Documents, words: tuple[str, ...]) -> ClosedWords:
    """A part in the words of a vocabulary."""
    number = {word: place for place, word in enumerate(words)}
    lines = [np.array([number.get(word, 0) for word in line]) for line in part.lines]
    return closed_ids(lines, words, part.documents)


def closed_ids(
    lines: Sequence[np.ndarray], words: tuple[str, ...], documents: Sequence[int] = (0,)
) -> ClosedWords:
    """Lines of ids."""
    ids = np.concatenate(lines).astype(np.int32)
    return ClosedWords(
        ids=ids,
        starts=np.cumsum([0, *(len(line) for line in lines)], dtype=np.int64),
        documents=np.array([*documents, len(lines)], dtype=np.int64),
        words=words,
        counts=np.bincount(ids, minlength=len(words)),
    )


class PlainKneserNey:
    """Interpolated modified Kneser-Ney (Chen and Goodman 1998) in dictionaries, as kenlm has it."""

    kind = "ngram"
    START, END = -1, -2

    def __init__(self, lines: Sequence[np.ndarray], order: int, words: tuple[str, ...]) -> None:
        self.words = words
        self._order = order
        self._uniform = 1 / (len(words) + 1)  # the line end is a word, too
        raw: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order + 1)]
        for line in lines:
            text = (self.START, *line.tolist(), self.END)
            for end in range(1, len(text)):
                for start in range(max(0, end - order + 1), end + 1):
                    raw[end - start + 1][text[start : end + 1]] += 1
        counts = raw[order]
        self._chances, self._backoff = [], []
        for size in range(order, 0, -1):
            chances, backoff = self._discounted(counts)
            self._chances.insert(0, chances)
            self._backoff.insert(0, backoff)
            # Lower orders count the different words to the left; at the line start, occurrences.
            lower = Counter(gram[1:] for gram in raw[size])
            lower.update({g: c for g, c in raw[size - 1].items() if g and g[0] == self.START})
            counts = lower

    @staticmethod
    def _discounted(
        counts: Counter[tuple[int, ...]],
    ) -> tuple[dict[tuple[int, ...], float], dict[tuple[int, ...], float]]:
        many = Counter(counts.values())
        share = many[1] / (many[1] + 2 * many[2])
        discounts = [0.0, *(j - (j + 1) * share * many[j + 1] / many[j] for j in (1, 2, 3))]
        totals: dict[tuple[int, ...], int] = defaultdict(int)
        taken: dict[tuple[int, ...], float] = defaultdict(float)
        for gram, count in counts.items():
            totals[gram[:-1]] += count
            taken[gram[:-1]] += discounts[min(count, 3)]
        chances = {
            gram: (count - discounts[min(count, 3)]) / totals[gram[:-1]]
            for gram, count in counts.items()
        }
        return chances, {context: mass / totals[context] for context, mass in taken.items()}

    def log_probabilities(self, lines: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Natural logs for each line: one per word, then that of the line end."""
        found = []
        for line in lines:
            text = (self.START, *line.tolist(), self.END)
            found.append(
                np.array(
                    [
                        math.log(self._chance(text[max(0, at - self._order + 1) : at], text[at]))
                        for at in range(1, len(text))
                    ]
                )
            )
        return found

    def next_log_probabilities(self, contexts: Sequence[np.ndarray]) -> np.ndarray:
        """Natural logs of every next word and, last, of the line end."""
        every = [*range(len(self.words)), self.END]
        rows = []
        for context in contexts:
            before = (self.START, *np.asarray(context).tolist())[1 - self._order :]
            rows.append([math.log(self._chance(before, word)) for word in every])
        return np.array(rows)

    def _chance(self, before: tuple[int, ...], word: int) -> float:
        chance = self._uniform
        for size in range(self._order):
            if size > len(before):
                break
            context = before[len(before) - size :]
            if context not in self._backoff[size]:
                break
            own = self._chances[size].get((*context, word), 0.0)
            chance = own + self._backoff[size][context] * chance
        return chance
