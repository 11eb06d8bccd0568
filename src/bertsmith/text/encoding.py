"""Encodings: token ids, word numbers, offsets, tokens that were cut; their assembly of fields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import TextError
from bertsmith.text.segment import Segmenter, is_chinese, word_starts
from bertsmith.text.special_tokens import Frame, SpecialTokens
from bertsmith.text.truncation import FieldBudgets, Truncation, Windows, allot, ends

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


class FieldEncoder(ABC):
    """Turns texts into Encodings; immutable, safe to share between threads."""

    special: SpecialTokens

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """The largest id plus one."""

    @property
    @abstractmethod
    def special_count(self) -> int:
        """Special tokens around a single text."""

    @abstractmethod
    def id_to_token(self, number: int) -> str | None:
        """The token of an id, if there is one."""

    @abstractmethod
    def fast_ids(
        self, texts: Sequence[str], max_length: int | None
    ) -> tuple[list[Ints], list[int]]:
        """Only ids with special tokens, and the number of tokens cut from the end."""

    @abstractmethod
    def unknown_tokens(self, ids: Sequence[Ints]) -> UnknownTokens:
        """How many of the tokens of texts are unknown; `ids` is an array (L,) for each text."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """What a folder holds of it, by file name; the same object always gives the same bytes."""

    @abstractmethod
    def _pieces(
        self, texts: Sequence[str], allow_special: bool, limits: tuple[int, int] | None
    ) -> list[Pieces]:
        """The tokens of each text; of long ones at least as many of both ends as `limits` says."""

    @abstractmethod
    def _frame(self, fields: int) -> Frame:
        """The special tokens around so many fields."""

    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        truncation: Truncation | None = None,
        allow_special: bool = False,
    ) -> Encoding:
        """One text, or a pair of texts, with its special tokens."""
        fields = [text] if pair is None else [text, pair]
        return self.encode_fields(fields, truncation=truncation, allow_special=allow_special)

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        *,
        truncation: Truncation | None = None,
        allow_special: bool = False,
    ) -> list[Encoding]:
        """Many texts, or pairs of texts; the same as one by one, but faster."""
        if isinstance(texts, str) or isinstance(pairs, str):
            raise TextError("a single str was given where a sequence of texts is expected")
        if pairs is not None and len(pairs) != len(texts):
            raise TextError(f"{len(texts)} texts and {len(pairs)} pairs were given; give as many")
        limits = _limits(truncation)
        columns = [self._pieces(texts, allow_special, limits)]
        if pairs is not None:
            columns.append(self._pieces(pairs, allow_special, limits))
        return [self._fit(list(row), truncation) for row in zip(*columns, strict=True)]

    def encode_fields(
        self,
        fields: Sequence[str],
        *,
        truncation: Truncation | None = None,
        allow_special: bool = False,
    ) -> Encoding:
        """Several fields in one Encoding, separated as a pair is; each may have its own budget."""
        if isinstance(fields, str) or not fields:
            raise TextError("encode_fields needs a sequence of one or more texts")
        return self._fit(self._pieces(fields, allow_special, _limits(truncation)), truncation)

    def windows(
        self, text: str, pair: str | None = None, *, windows: Windows, allow_special: bool = False
    ) -> list[Encoding]:
        """Every part of a long text: windows over it, or over `pair` with `text` whole in each.

        Nothing is lost over all windows, so their `cut` is 0.
        """
        fields = [text] if pair is None else [text, pair]
        *fixed, moving = self._pieces(fields, allow_special, None)
        frame = self._frame(len(fields))
        room = windows.length - frame.specials - sum(pieces.total for pieces in fixed)
        encodings = []
        for start in windows.starts(moving.total, room):
            window = moving.at(slice(start, start + room))
            encodings.append(
                assemble([*fixed, window], frame, (0,) * len(fields), self.id_to_token)
            )
        return encodings

    def _fit(self, fields: list[Pieces], setting: Truncation | None) -> Encoding:
        """Fields truncated by the setting, between their special tokens."""
        frame = self._frame(len(fields))
        totals = [pieces.total for pieces in fields]
        counts = allot(totals, frame.specials, setting)
        if setting is not None:
            fields = [
                pieces.pick(*ends(setting.keep, setting.head, count)) if count < total else pieces
                for pieces, count, total in zip(fields, counts, totals, strict=True)
            ]
        cut = tuple(total - count for total, count in zip(totals, counts, strict=True))
        return assemble(fields, frame, cut, self.id_to_token)


def _limits(setting: Truncation | None) -> tuple[int, int] | None:
    """The most tokens a setting could keep of the two ends of a field; None if unbounded."""
    if setting is None:
        return None
    most = setting.max_length
    if isinstance(setting, FieldBudgets) and None not in setting.budgets:
        most = max(budget for budget in setting.budgets if budget is not None)
    return None if most is None else (most, 0 if setting.keep == "head" else most)
