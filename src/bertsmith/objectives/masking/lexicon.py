"""A user's list of phrases or entities, matched in rows of token ids by a trie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins
from bertsmith.errors import InputFileError
from bertsmith.files.lines import text_lines
from bertsmith.text.segment import is_chinese
from bertsmith.text.tokenizer import Tokenizer


class Lexicon:
    """Phrases as token ids; finds them whole, the longest from the left, never overlapping."""

    def __init__(self, phrases: Sequence[str], tokenizer: Tokenizer) -> None:
        self.phrases = tuple(phrases)
        self.forms = forms(self.phrases, tokenizer)
        sequences = [ids for form in self.forms for ids in form]
        self._trie = Trie(sequences, tokenizer.vocab_size)
        self._ideographs = _ideographs(tokenizer)

    @classmethod
    def read(cls, path: Path, tokenizer: Tokenizer) -> Lexicon:
        """One phrase per line; what follows a tab (a part of speech, a count) is ignored."""
        lines = (line.partition("\t")[0].strip() for line in text_lines(path))
        phrases = list(dict.fromkeys(line for line in lines if line))
        if not phrases:
            raise InputFileError(f"{path} holds no phrase; write one per line")
        return cls(phrases, tokenizer)

    def find(self, rows: RowsBatch) -> tuple[Longs, Longs]:
        """The first row and the size of each phrase in a batch."""
        may_end = self._boundaries(rows)
        starts = np.flatnonzero(may_end[:-1] & rows.real)
        stops = rows.starts[rows.texts[starts]] + rows.sizes[rows.texts[starts]]
        sizes = self._trie.longest_at(rows.ids, starts, stops, may_end)
        return _leftmost(starts[sizes > 0], sizes[sizes > 0])

    def entries(self, rows: RowsBatch, starts: Longs, sizes: Longs) -> tuple[Longs, Longs]:
        """Which phrase each place of `find` holds, and in which of the `forms`."""
        forms, phrases = np.divmod(self._trie.exact(rows.ids, starts, sizes), len(self.phrases))
        return phrases, forms

    def _boundaries(self, rows: RowsBatch) -> Flags:
        """(T + 1,) where a phrase may begin or end: between words, and next to an ideograph.

        The words of Chinese are a segmenter's opinion; a phrase may cut through them.
        """
        edge = np.ones(len(rows.ids) + 1, dtype=bool)
        edge[:-1] = begins(rows.words, rows) | ~rows.real
        touching = self._ideographs[rows.ids]
        edge[:-1] |= touching
        edge[1:] |= touching
        return edge


def forms(phrases: Sequence[str], tokenizer: Tokenizer) -> list[list[list[int]]]:
    """The ids of each phrase at the start of a text, and inside of one where that differs."""
    bare = _ids(phrases, tokenizer)
    inside = _ids([f" {phrase}" for phrase in phrases], tokenizer)
    return [bare] if inside == bare else [bare, inside]


def _ids(phrases: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
    encodings = tokenizer.encode_batch(phrases)
    return [encoding.ids[encoding.words >= 0].tolist() for encoding in encodings]


def _ideographs(tokenizer: Tokenizer) -> Flags:
    """(V,) which tokens are Chinese characters."""
    tokens = (tokenizer.id_to_token(number) or "" for number in range(tokenizer.vocab_size))
    bare = (token.removeprefix("##") for token in tokens)
    return np.array([bool(t) and all(is_chinese(c) for c in t) for t in bare], dtype=bool)


def _leftmost(starts: Longs, sizes: Longs) -> tuple[Longs, Longs]:
    """Matches in order without those that overlap an earlier match of the result."""
    matches = []
    while len(starts):
        reach = np.maximum.accumulate(starts + sizes)
        free = np.ones(len(starts), dtype=bool)  # begins after all before it have ended
        free[1:] = starts[1:] >= reach[:-1]
        heads = np.flatnonzero(free)
        matches.append((starts[heads], sizes[heads]))
        # Of each cluster only what lies after the end of its head can still be a match.
        end = np.repeat(starts[heads] + sizes[heads], np.diff(np.append(heads, len(starts))))
        rest = ~free & (starts >= end)
        starts, sizes = starts[rest], sizes[rest]
    if not matches:
        return starts, sizes
    first, long = (np.concatenate(column) for column in zip(*matches, strict=True))
    order = np.argsort(first)
    return first[order], long[order]


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
