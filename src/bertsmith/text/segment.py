"""Word segmentation of text without spaces: the Segmenter interface and its implementations."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError, MissingExtraError, unknown

# Ideographs that BERT splits off (google-research/bert): unified and compatibility blocks.
CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
SEGMENTERS = ("character", "jieba")
BREAK = "\n"  # between texts that are segmented as one
_OUTSIDE = re.compile(r"[^\u4e00-\u9fd5A-Za-z0-9+#&._%\-\n]")


class Segmenter(Protocol):
    """Finds the words of a text."""

    def words(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) of each word, in order, without gaps or overlaps."""


@runtime_checkable
class JoinedSegmenter(Segmenter, Protocol):
    """A segmenter that is faster on many texts joined into one."""

    def starts(self, text: str) -> NDArray[np.bool_]:
        """(N,) True where a word begins; line breaks end words, so texts can be joined by them."""


class CharacterSegmenter:
    """Every character is a word: what BERT itself does with Chinese."""

    def words(self, text: str) -> list[tuple[int, int]]:
        """One span per character."""
        return [(i, i + 1) for i in range(len(text))]


def is_chinese(character: str) -> bool:
    """Whether BERT splits this character off as an ideograph."""
    code = ord(character)
    return code >= 0x3400 and any(first <= code <= last for first, last in CHINESE)


def segmenter(name: str) -> Segmenter:
    """The segmenter of a name, for recipes and the command line."""
    if name == "jieba":
        return JiebaSegmenter()
    if name == "character":
        return CharacterSegmenter()
    raise unknown("segmenter", name, SEGMENTERS)


def word_starts(segmenter: Segmenter, texts: Sequence[str]) -> NDArray[np.bool_]:
    """(N,) where words begin in texts joined by line breaks; in ASCII ones, everywhere.

    A segmenter groups only ideographs, so ASCII texts are not passed to it.
    """
    if isinstance(segmenter, JoinedSegmenter):
        return segmenter.starts(
            BREAK.join(" " * len(text) if text.isascii() else text for text in texts)
        )
    opens = np.ones(sum(map(len, texts)) + max(0, len(texts) - 1), dtype=bool)
    at = 0
    for text in texts:
        if not text.isascii():
            spans = segmenter.words(text)
            check_spans(spans, len(text))
            opens[at : at + len(text)] = False
            opens[[at + start for start, _ in spans]] = True
        at += len(text) + 1
    return opens


def check_spans(spans: list[tuple[int, int]], length: int) -> None:
    """Refuse spans that are not in order, overlap, or leave the text."""
    end = 0
    for start, stop in spans:
        if start < end or stop <= start or stop > length:
            raise ConfigError(f"the segmenter returned the span ({start}, {stop}) out of order")
        end = stop


class JiebaSegmenter:
    """Words of jieba's accurate mode, with the dictionary that it ships (extra `zh`)."""

    def __init__(self) -> None:
        try:
            rjieba: Any = importlib.import_module("rjieba")
        except ModuleNotFoundError as error:
            raise MissingExtraError("rjieba", "zh") from error
        self._jieba = rjieba.Jieba()

    def words(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) of each word, in order, without gaps or overlaps."""
        starts = self.starts(text).nonzero()[0].tolist()
        return list(zip(starts, [*starts[1:], len(text)], strict=False))

    def starts(self, text: str) -> NDArray[np.bool_]:
        """(N,) True where a word begins; line breaks end words, so texts can be joined by them."""
        plain = _OUTSIDE.sub(" ", text)
        codes = np.frombuffer(plain.encode("utf-32-le"), dtype=np.uint32)
        is_start = np.zeros(len(text) + 1, dtype=bool)
        is_start[np.cumsum([0, *map(len, self._jieba.cut(plain))])] = True
        is_start[:-1] |= (codes == ord(" ")) | (codes == ord("\n"))
        return is_start[:-1]
