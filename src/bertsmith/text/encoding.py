"""Encodings: token ids, word numbers, offsets, and the number of tokens cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """One text, or several fields, as the tokens a model reads.

    `ids` (L,); `words` (L,) word number, counted over all fields, -1 for special tokens; `offsets`
    (L, 2) character positions in the untouched field, (0, 0) for special tokens; `segments` (L,);
    `fields` (L,) the input field each token came from, -1 for special tokens; `cut` the number of
    tokens left out of each field.
    """

    ids: Ints
    words: Ints
    offsets: Ints
    segments: Ints
    fields: Ints
    cut: tuple[int, ...]
    name_of: Callable[[int], str | None] = field(repr=False)

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
    """

    ids: Ints
    words: Ints
    offsets: Ints
    total: int

    def pick(self, head: int, tail: int) -> Pieces:
        """The first `head` and the last `tail` tokens."""
        if head + tail >= len(self.ids) == self.total:
            return self
        at = np.r_[0:head, len(self.ids) - tail : len(self.ids)]
        return Pieces(self.ids[at], self.words[at], self.offsets[at], self.total)


def renumber(words: Ints) -> Ints:
    """Word numbers 0, 1, 2 ... with a new number wherever the given number changes."""
    if len(words) == 0:
        return words.astype(np.int32)
    steps = np.empty(len(words), dtype=np.int32)
    steps[0] = 0
    np.not_equal(words[1:], words[:-1], out=steps[1:], casting="unsafe")
    return np.cumsum(steps, dtype=np.int32)
