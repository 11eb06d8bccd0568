"""Token ids as text, and text given out as soon as it can no longer change."""

from __future__ import annotations

from collections.abc import Sequence

from bertsmith.text.segment import is_chinese
from bertsmith.text.tokenizer import Tokenizer

UNFINISHED = "\ufffd"  # what the bytes of half a character decode to


class Spelling:
    """The text of new tokens after others that are not shown again."""

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int] = ()) -> None:
        """`before` are the tokens of a prompt, where new ones continue its last word."""
        self._tokenizer = tokenizer
        self._before = list(before)
        self._shown = len(self._decoded(self._before)) if before else 0

    def text(self, ids: Sequence[int]) -> str:
        """The text of new tokens, as far as tokens preserve it."""
        return self._decoded([*self._before, *ids])[self._shown :]

    def _decoded(self, ids: list[int]) -> str:
        text = self._tokenizer.decode(ids)
        return without_chinese_spaces(text) if self._tokenizer.separates_words else text


def without_chinese_spaces(text: str) -> str:
    """The text without the single spaces that WordPiece puts between Chinese characters."""
    parts = text.split(" ")
    joined = parts[:1]
    for part in parts[1:]:
        closed = joined[-1] and part and is_wide(joined[-1][-1]) and is_wide(part[0])
        joined += [part] if closed else [" ", part]
    return "".join(joined)


def is_wide(character: str) -> bool:
    """Whether this is a Chinese character or a punctuation mark of Chinese."""
    code = ord(character)
    return 0x3000 <= code <= 0x303F or 0xFF00 <= code <= 0xFFEF or is_chinese(character)


class TextStream:
    """Gives out the text of one row: whole words, or Chinese characters, as they become certain."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._given = ""

    def add(self, ids: Sequence[int]) -> str:
        """What is certain after these new tokens, all so far, and was not given out yet."""
        return self._give(certain(self._spelling.text(ids)))

    def finish(self, ids: Sequence[int]) -> str:
        """The rest, after the last token."""
        return self._give(self._spelling.text(ids))

    def _give(self, text: str) -> str:
        """The part of a text that follows what was given out before."""
        rest, self._given = text[len(self._given) :], max(text, self._given, key=len)
        return rest


def certain(text: str) -> str:
    """The start of a text that further tokens cannot change.

    The last word may still grow, and a half character become a whole one; a Chinese character is
    a word of its own.
    """
    text = text.rstrip(UNFINISHED)
    for end in range(len(text), 0, -1):
        if is_chinese(text[end - 1]) or (end < len(text) and text[end].isspace()):
            return text[:end].rstrip() if not is_chinese(text[end - 1]) else text[:end]
    return ""
