"""Word boundaries in text without spaces: the Segmenter interface and what stands behind it."""

from __future__ import annotations

import importlib
import logging
from typing import Any, Protocol

from bertsmith.errors import ConfigError, MissingExtraError, unknown

# Ideographs BERT sets apart (google-research/bert): the unified blocks and the compatibility ones.
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


class Segmenter(Protocol):
    """Finds the words of a text."""

    def words(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) of each word, in order, without gaps or overlaps."""


class CharacterSegmenter:
    """Every character is a word: what BERT itself does with Chinese."""

    def words(self, text: str) -> list[tuple[int, int]]:
        """One span a character."""
        return [(i, i + 1) for i in range(len(text))]


class JiebaSegmenter:
    """Words of the jieba dictionary (extra `zh`)."""

    def __init__(self) -> None:
        try:
            jieba: Any = importlib.import_module("jieba")
        except ModuleNotFoundError as error:
            raise MissingExtraError("jieba", "zh") from error
        jieba.setLogLevel(logging.WARNING)
        self._tokenizer = jieba.Tokenizer()

    def words(self, text: str) -> list[tuple[int, int]]:
        """Spans of jieba's accurate mode."""
        spans: list[tuple[int, int]] = []
        at = 0
        for word in self._tokenizer.cut(text):
            spans.append((at, at + len(word)))
            at += len(word)
        return spans


def is_chinese(character: str) -> bool:
    """Whether BERT sets this character apart as an ideograph."""
    code = ord(character)
    return code >= 0x3400 and any(first <= code <= last for first, last in CHINESE)


def segmenter(name: str) -> Segmenter:
    """The segmenter of a name, for recipes and the command line."""
    if name == "jieba":
        return JiebaSegmenter()
    if name == "character":
        return CharacterSegmenter()
    raise unknown("segmenter", name, SEGMENTERS)


def check_spans(spans: list[tuple[int, int]], length: int) -> None:
    """Refuse spans that are not in order, overlap, or leave the text."""
    end = 0
    for start, stop in spans:
        if start < end or stop <= start or stop > length:
            raise ConfigError(f"the segmenter returned the span ({start}, {stop}) out of order")
        end = stop
