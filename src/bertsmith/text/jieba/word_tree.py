"""A dictionary of words as flat tables, so that all its words in a long text are found at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LETTERS = 1 << 16  # characters beyond these are in no word
NONE = -1
ROOM = 4  # places in a table for each key, so that few keys want one that is taken
_NO_KEY = np.uint64(2**64 - 1)
# Odd, near 2**64 over the golden ratio: the upper bits of a product with it are evenly spread.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Places = NDArray[np.int32]
Values = NDArray[np.float64]


class WordTree:
    """Words letter by letter; a node is the beginning of words, and maybe a word itself."""

    def __init__(self, words: Sequence[str], values: Values) -> None:
        """Each word with its value (W,); of equal words the last counts, and NaN is no word."""
        letters = np.frombuffer("".join(words).encode("utf-32-le"), dtype=np.uint32)
        left = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        places = np.cumsum(left) - left  # of the next letter of each word
        nodes = np.zeros(len(words), dtype=np.int64)  # where each word has got to; 0 is the root
        keys = [np.full(1, _NO_KEY)]  # what leads to each node
        size = 1
        while len(longer := left.nonzero()[0]):
            named, ranks = np.unique(
                _keys(nodes[longer], letters[places[longer]]), return_inverse=True
            )
            keys.append(named)
            nodes[longer] = size + ranks
            size += len(named)
            places[longer] += 1
            left[longer] -= 1
        self._nodes = _Numbers(np.concatenate(keys))
        self._values = np.full(size, np.nan)
        self._values[nodes] = values
        self._first = self._nodes.of(_keys(np.zeros(LETTERS, np.int64), np.arange(LETTERS)))

    def find(self, letters: NDArray[np.uint16]) -> Iterator[tuple[Places, Values]]:
        """For each length 1, 2, ...: (F,) where such words start in `letters` (N,), their values.

        The letter 0 is in no word.
        """
        places = np.arange(len(letters), dtype=np.int32)
        nodes = self._first[letters]
        length = 0
        while True:
            alive = nodes != NONE
            places, nodes = places[alive], nodes[alive]
            if len(places) == 0:
                return
            values = self._values[nodes]
            real = ~np.isnan(values)
            yield places[real], values[real]
            length += 1
            within = places.searchsorted(np.int32(len(letters) - length))
            places, nodes = places[:within], nodes[:within]
            nodes = self._nodes.of(_keys(nodes, letters[places + np.int32(length)]))


class _Numbers:
    """The rank of each key, in a table with gaps: a key stands at its place or soon after."""

    def __init__(self, keys: NDArray[np.uint64]) -> None:
        bits = (ROOM * len(keys)).bit_length()
        self._keys = keys
        self._shift = np.uint64(64 - bits)
        self._table = np.full((1 << bits) + len(keys), NONE, dtype=np.int32)
        waiting = np.arange(len(keys), dtype=np.int32)
        places = self._places(keys)
        while len(waiting):
            free = self._table[places] == NONE
            self._table[places[free]] = waiting[free]  # of several that want a place one gets it
            lost = self._table[places] != waiting
            waiting, places = waiting[lost], places[lost] + 1

    def of(self, keys: NDArray[np.uint64]) -> Places:
        """(K,) -> (K,), NONE for a key that is not there."""
        places = self._places(keys)
        numbers = self._table[places]
        # Neither the key nor a gap: look further.
        asking = ((self._keys[numbers] != keys) & (numbers != NONE)).nonzero()[0]
        while len(asking):
            places[asking] += 1
            found = self._table[places[asking]]
            numbers[asking] = found
            asking = asking[(self._keys[found] != keys[asking]) & (found != NONE)]
        return numbers

    def _places(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        return ((keys * _SPREAD) >> self._shift).astype(np.int64)


def _keys(nodes: NDArray[Any], letters: NDArray[Any]) -> NDArray[np.uint64]:
    """(K,), (K,) -> (K,): a node and the letter that leads on from it."""
    return nodes.astype(np.uint64) * np.uint64(LETTERS) + letters.astype(np.uint64)
