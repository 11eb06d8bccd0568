"""Encodings: token ids, word numbers, offsets and the number of tokens cut, and their assembly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.segment import Segmenter, is_chinese, word_starts
from bertsmith.text.special_tokens import Frame

Ints = NDArray[np.int32]
HIGH_UNKNOWN = 0.05  # the share of unknown tokens above which a vocabulary does not fit a text


@dataclass(slots=True)
class UnknownTokens:
    """How many tokens of texts, special tokens aside, are the unknown token of a vocabulary."""

    tokens: int = 0
    unknown: int = 0
    name: str = "[UNK]"
    what: str = "unknown tokens"

    def add(self, other: UnknownTokens) -> None:
        """Add the count of further texts."""
        self.tokens, self.unknown = self.tokens + other.tokens, self.unknown + other.unknown
        self.name, self.what = other.name, other.what

    @property
    def share(self) -> float:
        """Unknown tokens per token."""
        return self.unknown / max(1, self.tokens)

    @property
    def is_high(self) -> bool:
        """Whether so many are unknown that the vocabulary is the wrong one."""
        return self.share > HIGH_UNKNOWN

    def __str__(self) -> str:
        line = f"{self.what} ({self.name}): {self.unknown:,} of {self.tokens:,}"
        line += f", {100 * self.share:.1f} %" if self.unknown else ""
        if not self.is_high:
            return line
        return (
            f"warning: {line}: the vocabulary does not cover these texts; use a model of their "
            "language"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """One text, or several fields, as the tokens a model reads.

    `ids` (L,); `words` (L,) word number, counted over all fields, -1 for special tokens; `offsets`
    (L, 2) character positions in the untouched field, (0, 0) for special tokens; `segments` (L,);
    `fields` (L,) the input field each token came from, -1 for special tokens; `cut` the number of
    tokens left out of each field; `characters` (L, n) those of each token, where the model reads
    them.
    """

    ids: Ints
    words: Ints
    offsets: Ints
    segments: Ints
    fields: Ints
    cut: tuple[int, ...]
    name_of: Callable[[int], str | None] = field(repr=False)
    characters: NDArray[np.int16] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def total_cut(self) -> int:
        """How many tokens were left out in all."""
        return sum(self.cut)

    @property
    def tokens(self) -> list[str]:
        """The tokens as strings."""
        return [self.name_of(i) or "" for i in self.ids.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The tokens of one field before special tokens and truncation.

    `total` counts all tokens of the field; when it is larger than `len(ids)`, the arrays hold the
    first and the last of them; the middle, which no setting could keep, was only counted.
    `characters` (N, n) are those of each token, where the model reads them.
    """

    ids: Ints
    words: Ints
    offsets: Ints
    total: int
    characters: NDArray[np.int16] | None = None

    def pick(self, head: int, tail: int) -> Pieces:
        """The first `head` and the last `tail` tokens."""
        if head + tail >= len(self.ids) == self.total:
            return self
        at = np.r_[0:head, len(self.ids) - tail : len(self.ids)]
        return self.at(at)

    def at(self, rows: slice | NDArray[np.int64]) -> Pieces:
        """Some of the tokens."""
        spelled = None if self.characters is None else self.characters[rows]
        return Pieces(self.ids[rows], self.words[rows], self.offsets[rows], self.total, spelled)


def renumber(words: Ints) -> Ints:
    """Word numbers 0, 1, 2 ... with a new number wherever the given number changes."""
    if len(words) == 0:
        return words.astype(np.int32)
    steps = np.empty(len(words), dtype=np.int32)
    steps[0] = 0
    np.not_equal(words[1:], words[:-1], out=steps[1:], casting="unsafe")
    return np.cumsum(steps, dtype=np.int32)


def assemble(
    parts: Sequence[Pieces],
    frame: Frame,
    cut: tuple[int, ...],
    name_of: Callable[[int], str | None],
) -> Encoding:
    """One Encoding of the pieces of each field inside their frame of special tokens."""
    length = frame.specials + sum(len(pieces.ids) for pieces in parts)
    ids = np.zeros(length, dtype=np.int32)
    words = np.full(length, -1, dtype=np.int32)
    offsets = np.zeros((length, 2), dtype=np.int32)
    segments = np.zeros(length, dtype=np.int32)
    fields = np.full(length, -1, dtype=np.int32)
    characters = [pieces.characters for pieces in parts if pieces.characters is not None]
    at = word = 0
    for number, gap in enumerate(frame.gaps):
        for mark, segment in gap:
            ids[at], segments[at] = mark, segment
            at += 1
        if number < len(parts) and len(parts[number].ids):
            pieces = parts[number]
            here = slice(at, at + len(pieces.ids))
            ids[here], offsets[here] = pieces.ids, pieces.offsets
            words[here] = pieces.words + word
            segments[here], fields[here] = frame.segments[number], number
            word = int(words[here][-1]) + 1
            at = here.stop
    return Encoding(
        ids=ids,
        words=words,
        offsets=offsets,
        segments=segments,
        fields=fields,
        cut=cut,
        name_of=name_of,
        characters=np.concatenate(characters) if characters else None,
    )


def with_segmenter_words(
    unsegmented: Sequence[Pieces], texts: Sequence[str], segmenter: Segmenter
) -> list[Pieces]:
    """The same pieces of each text with Chinese characters numbered by the segmenter's words."""
    opens = word_starts(segmenter, texts)
    regrouped = []
    at = 0
    for pieces, text in zip(unsegmented, texts, strict=True):
        regrouped.append(_regrouped(pieces, text, opens[at : at + len(text)].nonzero()[0]))
        at += len(text) + 1
    return regrouped


def _regrouped(pieces: Pieces, text: str, words: NDArray[np.int64]) -> Pieces:
    """Pieces with the numbers of `words` (W,), given by where they start."""
    if len(pieces.ids) == 0 or text.isascii() or len(words) == 0:
        return pieces
    starts = pieces.offsets[:, 0]
    chinese = np.array([s < len(text) and is_chinese(text[s]) for s in starts.tolist()], dtype=bool)
    span = np.searchsorted(words, starts, side="right") - 1
    # Words of the tokenizer get even keys, words of the segmenter get odd ones: they never mix.
    keys = np.where(chinese, span * 2 + 1, pieces.words * 2)
    return Pieces(pieces.ids, renumber(keys.astype(np.int32)), pieces.offsets, pieces.total)
