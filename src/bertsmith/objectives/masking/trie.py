"""A trie over token ids that walks many rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.rows import Flags, Longs


class Trie:
    """Sequences of token ids; `entries` numbers them in the order they were given, first wins."""

    def __init__(self, sequences: Iterable[Sequence[int]], vocab_size: int) -> None:
        edges: dict[tuple[int, int], int] = {}
        ends: dict[int, int] = {}
        self.longest = 0
        for number, sequence in enumerate(sequences):
            state = 0
            for token in sequence:
                state = edges.setdefault((state, token), len(edges) + 1)
            if state:
                ends.setdefault(state, number)
                self.longest = max(self.longest, len(sequence))
        self._vocab = vocab_size
        keys = np.fromiter((s * vocab_size + t for s, t in edges), np.int64, len(edges))
        order = np.argsort(keys)
        self._keys: Longs = np.append(keys[order], np.iinfo(np.int64).max)
        self._states: Longs = np.append(np.fromiter(edges.values(), np.int64, len(edges))[order], 0)
        self._entries = np.full(len(edges) + 1, -1, dtype=np.int64)
        self._entries[list(ends)] = list(ends.values())
        self._roots = np.zeros(vocab_size, dtype=np.int64)  # state after a first token, 0: none
        for (state, token), target in edges.items():
            if state == 0:
                self._roots[token] = target

    def exact(self, ids: NDArray[np.integer], starts: Longs, sizes: Longs) -> Longs:
        """The entry that equals ids[start : start + size], for each start; -1 if there is none."""
        states = self._roots[ids[starts]]
        for depth in range(1, int(sizes.max(initial=1))):
            going = np.flatnonzero((sizes > depth) & (states > 0))
            states[going] = self._step(states[going], ids[starts[going] + depth])
        found: Longs = self._entries[states]
        return found

    def longest_at(
        self, ids: NDArray[np.integer], starts: Longs, stops: Longs, may_end: Flags
    ) -> Longs:
        """How many tokens the longest entry at each start has, 0 for none.

        It stays before `stops` and ends only before rows where `may_end` (T + 1,) is True.
        """
        sizes = np.zeros(len(starts), dtype=np.int64)
        going = np.flatnonzero(self._roots[ids[starts]])
        states = self._roots[ids[starts[going]]]
        depth = 1
        while len(going):
            ended = (self._entries[states] >= 0) & may_end[starts[going] + depth]
            sizes[going[ended]] = depth
            inside = starts[going] + depth < stops[going]
            going, states = going[inside], states[inside]
            states = self._step(states, ids[starts[going] + depth])
            going, states = going[states > 0], states[states > 0]
            depth += 1
        return sizes

    def _step(self, states: Longs, tokens: NDArray[np.integer]) -> Longs:
        """The state after one more token, 0 where there is none."""
        keys = states * self._vocab + tokens
        at = np.searchsorted(self._keys, keys)
        return np.where(self._keys[at] == keys, self._states[at], 0)
