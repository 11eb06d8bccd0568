"""An n-gram model over memory-mapped arrays: probabilities of lines and of next words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.classic.ngram.counting import Ints, Numbers, framed
from bertsmith.errors import ConfigError

Floats = NDArray[np.float64]
KIND = "ngram"


@dataclass(frozen=True, slots=True, eq=False)
class NgramOrder:
    """The n-grams of one order: sorted `keys`, `logs`, and `backoffs` below the highest order."""

    keys: Ints
    logs: Floats
    backoffs: Floats | None


@dataclass(frozen=True, slots=True, eq=False)
class NgramLm:
    """n-grams by order from 1; the number after the last word is the end of a line, then its start.

    An n-gram of order 2 or more has the key: left word x size of the order below + number of the
    n-gram without its left word.
    """

    words: tuple[str, ...]
    orders: tuple[NgramOrder, ...]

    @property
    def kind(self) -> str:
        """The name in the table of kinds."""
        return KIND

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.orders)

    def log_probabilities(self, lines: Sequence[NDArray[np.integer]]) -> list[Floats]:
        """Natural logs for each line: one per word, then that of the end of the line."""
        if not lines:
            return []
        lengths = np.array([len(line) for line in lines], dtype=np.int64)
        ids = np.concatenate([np.asarray(line) for line in lines])
        self._check(ids)
        tokens, places = framed(ids, lengths, len(self.words))
        found = self._numbers(tokens, places)
        logs = np.asarray(self.orders[0].logs)[tokens]
        longest = np.ones(len(tokens), dtype=np.int8)
        for length in range(2, self.order + 1):
            here = np.flatnonzero(found[length - 1] >= 0)
            logs[here] = self.orders[length - 1].logs[found[length - 1][here]]
            longest[here] = length
        for length in range(1, self.order):
            backoffs = self.orders[length - 1].backoffs
            before = np.full(len(tokens), -1, dtype=np.int32)
            before[1:] = found[length - 1][:-1]
            here = np.flatnonzero((longest <= length) & (before >= 0) & (places > length - 1))
            if backoffs is not None:
                logs[here] += backoffs[before[here]]
        ends = np.cumsum(lengths + 1)[:-1]
        return list(np.split(logs[places > 0], ends))

    def next_log_probabilities(self, contexts: Sequence[NDArray[np.integer]]) -> Floats:
        """(B, V + 1) of every next word after the words since a line began; the end comes last."""
        rows = np.empty((len(contexts), len(self.words) + 1), dtype=np.float64)
        for row, context in zip(rows, contexts, strict=True):
            self._check(np.asarray(context))
            row[:] = self._next([len(self.words) + 1, *np.asarray(context).tolist()])
        return rows

    def _next(self, context: list[int]) -> Floats:
        """Of every next word after a context that begins with the start of the line."""
        history = context[max(0, len(context) - self.order + 1) :]
        width = len(self.words) + 1
        logs = np.array(self.orders[0].logs[:width])
        numbers: Numbers = np.arange(width, dtype=np.int32)
        own = self._numbers(
            np.array(history, dtype=np.int32), np.arange(len(history), dtype=np.int32)
        )
        for length in range(2, min(self.order, len(history) + 1) + 1):
            before = int(own[length - 2][-1])
            if before < 0:
                break
            backoffs = self.orders[length - 2].backoffs
            if backoffs is not None:
                logs += float(backoffs[before])
            known = np.flatnonzero(numbers >= 0)
            numbers[known] = self._find(
                length, np.full(len(known), history[-(length - 1)]), numbers[known]
            )
            here = np.flatnonzero(numbers >= 0)
            logs[here] = self.orders[length - 1].logs[numbers[here]]
        return logs

    def _numbers(self, tokens: Numbers, places: Numbers) -> list[Numbers]:
        """For each order, the number of the n-gram that ends at each token, -1 if there is none."""
        found = [tokens]
        for length in range(2, self.order + 1):
            here = np.flatnonzero((places >= length - 1) & (found[-1] >= 0))
            numbers = np.full(len(tokens), -1, dtype=np.int32)
            numbers[here] = self._find(length, tokens[here - (length - 1)], found[-1][here])
            found.append(numbers)
        return found

    def _find(self, length: int, left: NDArray[np.integer], suffix: Numbers) -> Numbers:
        """The numbers of n-grams by left word and suffix; -1 where there is none."""
        return find_keys(
            self.orders[length - 1].keys,
            left.astype(np.int64) * len(self.orders[length - 2].keys) + suffix,
        )

    def _check(self, ids: NDArray[np.integer]) -> None:
        if ids.size and not (ids.min() >= 0 and ids.max() < len(self.words)):
            raise ConfigError(
                f"ids {ids.min()} to {ids.max()} are not all words of this model, which has "
                f"{len(self.words):,}; encode the text with its own words"
            )


def find_keys(keys: Ints, wanted: Ints) -> Numbers:
    """The place of each wanted key among sorted keys, -1 where it is not there."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int32)
    places = np.searchsorted(keys, wanted)
    places[places == len(keys)] = 0
    return np.where(keys[places] == wanted, places, -1).astype(np.int32)
