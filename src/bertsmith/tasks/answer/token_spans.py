"""Characters of an answer to tokens, and tokens back to characters."""

from __future__ import annotations

import unicodedata

import numpy as np

from bertsmith.text.encoding import Ints


def tokens_at(text: str, offsets: Ints, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token with a character of text[start:end]: (N, 2) offsets.

    None if the tokenizer drops these characters, or keeps only white space of them.
    """
    begins, ends = offsets[:, 0], offsets[:, 1]
    touched = np.flatnonzero((ends > start) & (begins < end) & (begins < ends))
    if not len(touched):
        return None
    first, last = int(touched[0]), int(touched[-1])
    place = characters_of(text, offsets, first, last)
    return (first, last) if place[0] < place[1] else None


def characters_of(text: str, offsets: Ints, first: int, last: int) -> tuple[int, int]:
    """Where the tokens `first` to `last` stand in their text, without white space around them.

    Some tokenizers count the space before a word to its first token. Some drop accents, which then
    belong to no token: the marks of the last letter are taken along.
    """
    start, end = int(offsets[first, 0]), int(offsets[last, 1])
    while end < len(text) and not text[end].isascii() and _is_mark(text[end]):
        end += 1
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M")
