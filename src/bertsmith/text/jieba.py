"""Chinese word segmentation as jieba's accurate mode does it, computed by rjieba (jieba-rs).

rjieba groups some ASCII words otherwise than jieba, and treats characters outside jieba's character
set as part of words. Such characters are therefore replaced by blanks before cutting; with that,
all boundaries next to a Chinese character are those of `jieba.cut` (held by tests/text/test_jieba).
ASCII words may differ, but nobody uses them: a segmenter groups Chinese characters only.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import MissingExtraError

_OUTSIDE = re.compile(r"[^\u4e00-\u9fd5A-Za-z0-9+#&._%\-\n]")


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
