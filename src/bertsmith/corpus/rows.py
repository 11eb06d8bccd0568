"""RowsBatch: the examples of a micro-batch as rows, before anything is hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertsmith.random_keys import Floats, Words, hashes, key_of, unit
from bertsmith.text.encoding import Encoding

if TYPE_CHECKING:  # imports torch, which the processes that build a corpus do without
    from bertsmith.nn.layout import Sees

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsBatch:
    """Texts of `lengths` tokens one after another.

    `ids` (T,), `segments` (T,); `words` (T,) word number, unique over the batch, -1 for special
    tokens; `keys` (B,) what each text's random numbers are drawn from, so that they do not depend
    on its neighbors; `pair_labels` (B,) 0 right, 1 random or swapped, or another class of the text,
    None when there is none; `token_labels` (T,) a class of each row, -1 where none is predicted.
    `channels` are further numbers per row for the model's embeddings, `positions` (T,) are None
    where they count from 0 in each text, `sees` where all see all. `sentences` (T,) is the number
    of each row's sentence, where that is known: neighbors with other numbers are in other ones.
    `origins` (T,) is each row's place in the corpus, -1 for special tokens, and `source` the name
    of the examples in a program that has several kinds.
    `longest` is the number of tokens that a text may have, None without a limit.
    """

    ids: Ints
    segments: Ints
    words: Ints
    lengths: tuple[int, ...]
    keys: Words
    pair_labels: Longs | None = None
    channels: Mapping[str, NDArray[np.integer]] = field(default_factory=dict)
    positions: Longs | None = None
    sees: Sees | None = None
    sentences: Longs | None = None
    token_labels: Longs | None = None
    origins: Longs | None = None
    source: str = ""
    longest: int | None = None

    @cached_property
    def sizes(self) -> Longs:
        """(B,) the lengths as an array."""
        return np.array(self.lengths, dtype=np.int64)

    @cached_property
    def starts(self) -> Longs:
        """(B,) the first row of each text."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def texts(self) -> Longs:
        """(T,) the text each row belongs to."""
        return np.repeat(np.arange(len(self.lengths)), self.sizes)

    @cached_property
    def places(self) -> Longs:
        """(T,) each row's place in its text."""
        return np.arange(len(self.ids)) - np.repeat(self.starts, self.sizes)

    @cached_property
    def real(self) -> Flags:
        """(T,) which rows are text, not special tokens."""
        return self.words >= 0

    @cached_property
    def breaks(self) -> Flags:
        """(T,) rows where something new begins whatever the words say: a text, or after a special.

        Only rows of text are marked.
        """
        marks = np.ones(len(self.ids), dtype=bool)
        marks[1:] = ~self.real[:-1]
        marks[self.starts[self.sizes > 0]] = True
        return marks & self.real

    def bits(self, stream: str, at: Longs) -> Words:
        """64 random bits for each row of `at`, another set for each stream."""
        return self.numbered_bits(stream, self.texts[at], self.places[at])

    def uniforms(self, stream: str, at: Longs) -> Floats:
        """A number in [0, 1) for each row of `at`, another set for each stream."""
        return unit(self.bits(stream, at))

    def numbered_bits(self, stream: str, texts: Longs, numbers: Longs) -> Words:
        """64 random bits for things that are numbered in each text, such as its sentences."""
        return hashes(self._stream(stream)[texts], numbers)

    def text_uniforms(self, stream: str) -> Floats:
        """(B,) a number in [0, 1) for each text."""
        return unit(self._stream(stream))

    def _stream(self, stream: str) -> Words:
        """(B,) each text's key for one stream of random numbers."""
        return hashes(self.keys, np.full(len(self.keys), key_of(stream), dtype=np.uint64))


def rows_of(encodings: Sequence[Encoding], *, seed: int = 0, first: int = 0) -> RowsBatch:
    """Texts as a tokenizer gives them, numbered from `first`; a text's key is seed and number."""
    sizes = [len(encoding) for encoding in encodings]
    words = np.concatenate([np.empty(0, np.int32), *(encoding.words for encoding in encodings)])
    counts = np.array([int(e.words.max(initial=-1)) + 1 for e in encodings], dtype=np.int64)
    shift = np.repeat(np.cumsum(counts) - counts, sizes)
    return RowsBatch(
        ids=np.concatenate([np.empty(0, np.int32), *(encoding.ids for encoding in encodings)]),
        segments=np.concatenate([np.empty(0, np.int32), *(e.segments for e in encodings)]),
        words=np.where(words >= 0, words + shift, -1).astype(np.int32),
        lengths=tuple(sizes),
        keys=hashes(key_of(seed, "text"), first + np.arange(len(encodings))),
    )


def begins(values: NDArray[np.integer], rows: RowsBatch) -> Flags:
    """(T,) rows of text where a run of equal values begins; runs never cross special tokens."""
    marks = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=marks[1:])
    return (marks & rows.real) | rows.breaks


def spread(starts: Longs, counts: Longs) -> Longs:
    """Ranges written out: `counts[i]` numbers from `starts[i]` on, one range after another."""
    shift = starts - (np.cumsum(counts) - counts)
    return np.repeat(shift, counts) + np.arange(int(counts.sum()))
