"""How jieba joins single characters that its dictionary left side by side.

A hidden Markov model says of each ideograph whether it begins, continues or ends a word or is one.
All runs of a text are computed together, one step a character, with jieba's sums in its order.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.jieba.word_tree import LETTERS

BEGIN, MIDDLE, END, SINGLE = range(4)
STATES = "BMES"
# What can stand before each state; of equal sums jieba takes the second.
FORMER = np.array([END, BEGIN, BEGIN, END])
LATTER = np.array([SINGLE, MIDDLE, MIDDLE, SINGLE])
LEAST = -3.14e100  # jieba's logarithm of nothing

_LATIN = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")


class Joining:
    """The states of ideographs, by the tables of `jieba.finalseg`."""

    def __init__(self, model: Any) -> None:
        self._begin = np.array([[model.start_P[state]] for state in STATES])
        self._former = _moves(model, FORMER)
        self._latter = _moves(model, LATTER)
        self._emit = np.full((len(STATES), LETTERS), LEAST)
        for row, state in zip(self._emit, STATES, strict=True):
            known = {ord(letter): odds for letter, odds in model.emit_P[state].items()}
            row[list(known)] = list(known.values())

    def join(
        self,
        letters: NDArray[np.uint16],
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        opens: NDArray[np.bool_],
    ) -> None:
        """Set `opens` (N,) to where words begin, in the runs of ideographs from `starts` (R,) to
        `ends` (R,) of `letters` (N,)."""
        sizes = ends - starts
        order = (-sizes).argsort(kind="stable")  # so that those which go on are the first ones
        starts, sizes = starts[order], sizes[order]
        steps = np.arange(1, sizes.max(initial=0) + 1)
        counts = (len(sizes) - sizes[::-1].searchsorted(steps)).tolist()  # runs of each step
        states, came = self._forward(letters, starts, counts)
        for step in range(len(came), 0, -1):
            count = counts[step]
            state = states[:count]
            opens[starts[:count] + step] = (state == BEGIN) | (state == SINGLE)
            former = came[step - 1][state, np.arange(count)]
            states[:count] = np.where(former, FORMER[state], LATTER[state])

    def _forward(
        self, letters: NDArray[np.uint16], starts: NDArray[np.int64], counts: list[int]
    ) -> tuple[NDArray[np.int64], list[NDArray[np.bool_]]]:
        """(R,) the last state of each run; (4, R) for each step whether `FORMER` stood before."""
        states = np.empty(len(starts), dtype=np.int64)
        came: list[NDArray[np.bool_]] = []
        sums = self._begin + self._emit[:, letters[starts]]  # (4, R)
        for step, count in enumerate([*counts[1:], 0], start=1):
            done = sums[:, count:]
            states[count : sums.shape[1]] = np.where(done[END] > done[SINGLE], END, SINGLE)
            if count:
                odds = self._emit[:, letters[starts[:count] + step]]
                first = sums[FORMER, :count] + self._former + odds
                second = sums[LATTER, :count] + self._latter + odds
                came.append(first > second)
                sums = np.maximum(first, second)
        return states, came


def _moves(model: Any, before: NDArray[np.int64]) -> NDArray[np.float64]:
    """(4, 1) the logarithm of the way from the state `before` to each."""
    pairs = zip(before.tolist(), STATES, strict=True)
    return np.array([[model.trans_P[STATES[one]].get(other, LEAST)] for one, other in pairs])


def latin_starts(run: str) -> list[int]:
    """Where words begin in single letters that are no ideographs: numbers and names are whole."""
    starts = []
    at = 0
    for piece in _LATIN.split(run):
        if piece:
            starts.append(at)
        at += len(piece)
    return starts
