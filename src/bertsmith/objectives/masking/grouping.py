"""What is hidden together: each grouping gives tokens of one unit the same number.

To add one: a function of rows, a class of its settings, a line in GROUPINGS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from bertsmith.config import Settings
from bertsmith.corpus.rows import Longs, RowsBatch, begins
from bertsmith.errors import ConfigError
from bertsmith.objectives.masking.lexicon import Lexicon
from bertsmith.text.tokenizer import Tokenizer

Unit = Literal["word", "token"]
Grouping = Callable[[RowsBatch], Longs]
"""Rows -> (T,) the unit of each token, equal numbers on neighbors; -1 for special tokens."""


def tokens(rows: RowsBatch) -> Longs:
    """Every token for itself (BERT)."""
    return np.where(rows.real, np.arange(len(rows.ids)), -1)


def whole_words(rows: RowsBatch) -> Longs:
    """All pieces of a word; for Chinese, the words of the segmenter (BERT-wwm)."""
    return rows.words.astype(np.int64)


def runs(weights: Sequence[float], *, of: Unit = "word") -> Grouping:
    """Runs of n neighboring words or tokens, n = 1, 2, ... drawn by weight (SpanBERT, MacBERT)."""
    if not weights or min(weights) < 0 or sum(weights) <= 0:
        raise ConfigError(f"weights of run lengths must be positive numbers, not {list(weights)}")
    shares = np.cumsum(weights) / sum(weights)

    def group(rows: RowsBatch) -> Longs:
        new_word = begins(rows.words, rows) if of == "word" else rows.real
        at = np.flatnonzero(new_word)  # (W,) the first row of each word
        first = np.flatnonzero(rows.breaks[at])  # the first word of each stretch without specials
        counts = np.diff(np.append(first, len(at)))
        # The k-th number of a stretch is the length of its k-th run: runs tile the stretch.
        drawn = np.searchsorted(shares, rows.uniforms("run length", at), side="right")
        total = np.cumsum(np.minimum(drawn, len(shares) - 1) + 1)
        before = np.concatenate([[0], total])[first]
        ends = total - np.repeat(before, counts)  # first word after each run
        opens = np.zeros(len(at), dtype=bool)
        opens[first] = True
        inside = ends < np.repeat(counts, counts)
        opens[(np.repeat(first, counts) + ends)[inside]] = True
        run = np.cumsum(opens) - 1
        return np.where(rows.real, np.append(run, -1)[np.cumsum(new_word) - 1], -1)

    return group


def phrases(lexicon: Lexicon) -> Grouping:
    """Phrases or entities of a list; everything else by whole words (ERNIE)."""

    def group(rows: RowsBatch) -> Longs:
        units = begins(rows.words, rows)
        starts, sizes = lexicon.find(rows)
        # A phrase opens one unit, what stands after it the next.
        change = np.zeros(len(rows.ids) + 1, dtype=np.int64)
        change[starts] += 1
        change[starts + sizes] -= 1
        inside = np.cumsum(change[:-1]) > 0
        units[inside] = False
        units[starts] = True
        after = (starts + sizes)[starts + sizes < len(units)]
        units[after] = True
        return np.where(rows.real, np.cumsum(units), -1)

    return group


def geometric(p: float, longest: int) -> list[float]:
    """Weights of the lengths 1 to `longest`, each shorter by 1 - p than the one before."""
    return [p * (1 - p) ** n for n in range(longest)]


class GroupingSettings(Settings):
    """The settings of a grouping."""

    kind: str

    def make(self, tokenizer: Tokenizer) -> Grouping:
        """The grouping itself."""
        raise ConfigError(f"the grouping {self.kind!r} has no `make`")


class Token(GroupingSettings):
    """Every token for itself."""

    kind: Literal["token"] = "token"

    def make(self, tokenizer: Tokenizer) -> Grouping:
        """The grouping itself."""
        return tokens


class WholeWord(GroupingSettings):
    """All pieces of a word."""

    kind: Literal["whole_word"] = "whole_word"

    def make(self, tokenizer: Tokenizer) -> Grouping:
        """The grouping itself."""
        return whole_words


class Span(GroupingSettings):
    """Runs of words of length Geometric(p), at most `longest` (SpanBERT, arXiv:1907.10529)."""

    kind: Literal["span"] = "span"
    p: float = Field(default=0.2, gt=0.0, le=1.0)
    longest: int = Field(default=10, ge=1)

    def make(self, tokenizer: Tokenizer) -> Grouping:
        """The grouping itself."""
        return runs(geometric(self.p, self.longest))


class Ngram(GroupingSettings):
    """Runs of 1, 2, 3, ... words with these weights (MacBERT, arXiv:2004.13922), or of tokens."""

    kind: Literal["ngram"] = "ngram"
    weights: tuple[float, ...] = Field(default=(0.4, 0.3, 0.2, 0.1), strict=False)
    of: Unit = "word"

    def make(self, tokenizer: Tokenizer) -> Grouping:
        """The grouping itself."""
        return runs(self.weights, of=self.of)


class Phrase(GroupingSettings):
    """Phrases of a list, one per line; other text by whole words (ERNIE, arXiv:1904.09223)."""

    kind: Literal["phrase"] = "phrase"
    file: Path = Field(strict=False)

    def make(self, tokenizer: Tokenizer) -> Grouping:
        """The grouping itself."""
        return phrases(Lexicon.read(self.file, tokenizer))


class Entity(Phrase):
    """Entities of a list, one per line; other text by whole words."""

    kind: Literal["entity"] = "entity"  # type: ignore[assignment]


GROUPINGS: dict[str, type[GroupingSettings]] = {
    "token": Token,
    "whole_word": WholeWord,
    "span": Span,
    "ngram": Ngram,
    "phrase": Phrase,
    "entity": Entity,
}
