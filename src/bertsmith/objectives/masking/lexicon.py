"""A user's list of phrases or entities, found in rows of token ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertsmith.corpus.rows import Flags, Longs, RowsBatch, begins
from bertsmith.errors import InputFileError
from bertsmith.files.texts import read_texts
from bertsmith.objectives.masking.trie import Trie
from bertsmith.text.segment import is_chinese
from bertsmith.text.tokenizer import Tokenizer


class Lexicon:
    """Phrases as token ids; finds them whole, the longest from the left, never overlapping."""

    def __init__(self, phrases: Sequence[str], tokenizer: Tokenizer) -> None:
        self.phrases = tuple(phrases)
        sequences = [ids for form in forms(self.phrases, tokenizer) for ids in form]
        self._trie = Trie(sequences, tokenizer.vocab_size)
        self._ideographs = _ideographs(tokenizer)

    @classmethod
    def read(cls, path: Path, tokenizer: Tokenizer) -> Lexicon:
        """One phrase a line; what follows a tab (a part of speech, a count) is passed over."""
        lines = (line.partition("\t")[0].strip() for line in read_texts(path, format="txt"))
        phrases = list(dict.fromkeys(line for line in lines if line))
        if not phrases:
            raise InputFileError(f"{path} holds no phrase; write one a line")
        return cls(phrases, tokenizer)

    def find(self, rows: RowsBatch) -> tuple[Longs, Longs]:
        """The first row and the size of each phrase in a batch."""
        may_end = self._boundaries(rows)
        starts = np.flatnonzero(may_end[:-1] & rows.real)
        stops = rows.starts[rows.texts[starts]] + rows.sizes[rows.texts[starts]]
        sizes = self._trie.longest_at(rows.ids, starts, stops, may_end)
        return _leftmost(starts[sizes > 0], sizes[sizes > 0])

    def _boundaries(self, rows: RowsBatch) -> Flags:
        """(T + 1,) where a phrase may begin or end: between words, and beside an ideograph.

        The words of Chinese are a segmenter's opinion; a phrase may cut through them.
        """
        edge = np.ones(len(rows.ids) + 1, dtype=bool)
        edge[:-1] = begins(rows.words, rows) | ~rows.real
        beside = self._ideographs[rows.ids]
        edge[:-1] |= beside
        edge[1:] |= beside
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
    """Matches in order without those that overlap one that began before them and was kept."""
    kept = []
    while len(starts):
        reach = np.maximum.accumulate(starts + sizes)
        free = np.ones(len(starts), dtype=bool)  # begins after all before it have ended
        free[1:] = starts[1:] >= reach[:-1]
        heads = np.flatnonzero(free)
        kept.append((starts[heads], sizes[heads]))
        # Of each cluster only what lies after the end of its head can still be kept.
        end = np.repeat(starts[heads] + sizes[heads], np.diff(np.append(heads, len(starts))))
        rest = ~free & (starts >= end)
        starts, sizes = starts[rest], sizes[rest]
    if not kept:
        return starts, sizes
    first, long = (np.concatenate(column) for column in zip(*kept, strict=True))
    order = np.argsort(first)
    return first[order], long[order]
