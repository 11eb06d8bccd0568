"""The words of a text, as BM25 counts them: case folded, Chinese cut by a segmenter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, get_args

from bertsmith.errors import MissingExtraError, unknown
from bertsmith.text.segment import CHINESE, Segmenter, segmenter

WordSegmenter = Literal["jieba", "bigrams"]
SEGMENTERS: tuple[WordSegmenter, ...] = get_args(WordSegmenter)

_RUN = re.compile(r"\w+")
_RANGES = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE)
_PARTS = re.compile(f"[{_RANGES}]+|[^{_RANGES}]+")
_CHINESE = re.compile(f"[{_RANGES}]")


class Words:
    """Cuts texts into words; compatibility forms (full-width letters) count as the plain ones."""

    def __init__(self, segmenter_name: str) -> None:
        if segmenter_name not in SEGMENTERS:
            raise unknown("segmenter", segmenter_name, SEGMENTERS)
        self._name = segmenter_name
        self._segmenter: Segmenter | None = None

    def of(self, text: str) -> list[str]:
        """The words in their order."""
        plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
        plain = plain.casefold()
        if plain.isascii() or not _CHINESE.search(plain):
            return _RUN.findall(plain)
        return list(self._bigrams(plain) if self._name == "bigrams" else self._cut(plain))

    def _cut(self, text: str) -> Iterator[str]:
        """Runs of word characters, cut where a Chinese word begins or ends."""
        if self._segmenter is None:
            self._segmenter = segmenter("jieba")
        borders = {start for start, _ in self._segmenter.words(text)}
        for run in _RUN.finditer(text):
            begin = run.start()
            for part in _PARTS.finditer(run.group()):
                first, last = begin + part.start(), begin + part.end()
                if not _CHINESE.match(part.group()):
                    yield part.group()
                    continue
                start = first
                for place in range(first + 1, last + 1):
                    if place == last or place in borders:
                        yield text[start:place]
                        start = place

    def _bigrams(self, text: str) -> Iterator[str]:
        for run in _RUN.finditer(text):
            for part in _PARTS.findall(run.group()):
                if len(part) < 2 or not _CHINESE.match(part):
                    yield part
                else:
                    yield from (part[i : i + 2] for i in range(len(part) - 1))


def usable_segmenter() -> WordSegmenter:
    """jieba where it is installed; else every two neighboring Chinese characters are a word."""
    try:
        segmenter("jieba")
    except MissingExtraError:
        return "bigrams"
    return "jieba"
