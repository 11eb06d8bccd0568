"""Words as rows of character ids: UTF-8 bytes between marks, as published ELMo models read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

CharacterIds = NDArray[np.int64]

BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 256, 257, 258, 259, 260
ROWS = 262  # 256 bytes and five marks, counted from 1; 0 is a place without a word
MARKS = 2  # around a word
LENGTH = 50  # ids per word, its two marks included
BEGIN, END = -1, -2  # stand for a sentence's ends among words


def word_row(word: bytes | int, length: int = LENGTH) -> CharacterIds:
    """The ids of a word, or of `BEGIN` or `END`: (length,); a longer word loses its last bytes."""
    if isinstance(word, int):
        inner = [BEGIN_SENTENCE if word == BEGIN else END_SENTENCE]
    else:
        inner = list(word[: length - 2])
    row = np.full(length, PADDING, dtype=np.int64)
    row[0] = BEGIN_WORD
    row[1 : 1 + len(inner)] = inner
    row[1 + len(inner)] = END_WORD
    return row + 1


def character_table(words: Iterable[str], length: int = LENGTH) -> CharacterIds:
    """The rows of words: (n, length)."""
    rows = [word_row(word.encode(errors="surrogatepass"), length) for word in words]
    return np.stack(rows) if rows else np.zeros((0, length), dtype=np.int64)


def mark_rows(length: int = LENGTH) -> CharacterIds:
    """The rows of a sentence's begin and end: (2, length)."""
    return np.stack([word_row(BEGIN, length), word_row(END, length)])


def count_cut(words: Sequence[str], length: int = LENGTH) -> int:
    """How many words are longer than their row, and lose bytes."""
    return sum(len(word.encode(errors="surrogatepass")) > length - 2 for word in words)
