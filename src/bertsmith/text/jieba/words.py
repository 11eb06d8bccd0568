"""The words jieba finds, found in a long text at once: the same dictionary, sums and rules.

jieba (accurate mode) divides each block of ideographs, letters and digits into the words of its
dictionary with the highest product of frequencies, then joins single characters that stand side by
side by a hidden Markov model. Here both are computed for many blocks together, in numpy, with
jieba's sums in jieba's order, so that every span is `jieba.cut`'s, ties included.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import MissingExtraError
from bertsmith.text.jieba.best_division import Division, divide
from bertsmith.text.jieba.joining import Joining, latin_starts
from bertsmith.text.jieba.word_tree import LETTERS, WordTree

CHUNK = 1 << 17  # characters at a time: bounds the memory, and larger ones are not faster
IDEOGRAPHS = (0x4E00, 0x9FD5)  # those jieba looks at
OTHERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#&._%-"


class JiebaSegmenter:
    """Words of jieba's accurate mode, with the dictionary it ships (extra `zh`)."""

    def __init__(self) -> None:
        try:
            jieba: Any = importlib.import_module("jieba")
            model: Any = importlib.import_module("jieba.finalseg")
        except ModuleNotFoundError as error:
            raise MissingExtraError("jieba", "zh") from error
        # jieba itself would keep what it reads in a cache file that anybody may write.
        with jieba.Tokenizer().get_dict_file() as file:
            words, counts = _entries(file.read().decode())
        self._unknown = -math.log(sum(counts))  # a letter that starts no word counts as seen once
        self._tree = WordTree(words, _logarithms(counts) + self._unknown)
        self._joining = Joining(model)
        self._letters = np.zeros(LETTERS, dtype=np.uint16)  # 0: outside of blocks
        inside = np.array([*range(IDEOGRAPHS[0], IDEOGRAPHS[1] + 1), *map(ord, OTHERS)])
        self._letters[inside] = inside

    def words(self, text: str) -> list[tuple[int, int]]:
        """The (start, end) of each word, in order, without gaps or overlaps."""
        starts = self.starts(text).nonzero()[0].tolist()
        return list(zip(starts, [*starts[1:], len(text)], strict=False))

    def starts(self, text: str) -> NDArray[np.bool_]:
        """(N,) True where a word begins; line breaks part words, so texts can be joined by them."""
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        letters = self._letters[np.minimum(codes, LETTERS - 1)]
        opens: NDArray[np.bool_] = letters == 0
        for low, high in _chunks(opens):
            self._open(text[low:high], letters[low:high], opens[low:high])
        opens[1:] &= (codes[1:] != ord("\n")) | (codes[:-1] != ord("\r"))  # these two are one word
        return opens

    def _open(self, text: str, letters: NDArray[np.uint16], opens: NDArray[np.bool_]) -> None:
        """Set `opens` (N,) where words begin in blocks."""
        division = divide(self._tree, letters, self._unknown)
        opens |= division.opens
        starts, ends = _runs(division.lone)
        if len(starts) == 0:
            return
        lone = _unless_known(division, starts, ends)
        ideographs = letters >= IDEOGRAPHS[0]
        self._joining.join(letters, *_runs(lone & ideographs), opens)
        starts, ends = _runs(lone & ~ideographs)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            opens[start:end] = False
            opens[[start + at for at in latin_starts(text[start:end])]] = True


def _chunks(outside: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """(N,) -> from where to where: pieces that end outside of blocks."""
    low = 0
    while low < len(outside):
        high = min(low + CHUNK, len(outside))
        ahead = outside[high:]
        if len(ahead):
            first = int(ahead.argmax())
            high += first if ahead[first] else len(ahead)
        yield low, high
        low = high


def _runs(flags: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(N,) -> (R,), (R,): from where to where flags are set, two or more side by side."""
    padded = np.zeros(len(flags) + 2, dtype=bool)
    padded[1:-1] = flags
    edges = (padded[1:] != padded[:-1]).nonzero()[0]
    starts, ends = edges[::2], edges[1::2]
    several = ends - starts > 1
    return starts[several], ends[several]


def _unless_known(
    division: Division, starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(N,) single letters, without the runs (R,) that are a word, which jieba leaves apart."""
    until = np.zeros(len(division.lone), dtype=np.int32)
    until[starts] = ends
    known = until[division.starts] == division.ends
    lone = division.lone.copy()
    for start, end in zip(
        division.starts[known].tolist(), division.ends[known].tolist(), strict=True
    ):
        lone[start:end] = False
    return lone


def _entries(dictionary: str) -> tuple[list[str], list[int]]:
    """The words of a dictionary file, one a line, and how often each was seen."""
    words = re.findall(r"^(\S+) \d", dictionary, re.MULTILINE)
    counts = re.findall(r"^\S+ (\d+)", dictionary, re.MULTILINE)
    return words, list(map(int, counts))


def _logarithms(counts: list[int]) -> NDArray[np.float64]:
    """Of each count, by the standard library: numpy's can differ in the last bit."""
    known = {count: math.log(count) if count else math.nan for count in set(counts)}
    return np.fromiter(map(known.__getitem__, counts), dtype=np.float64, count=len(counts))
