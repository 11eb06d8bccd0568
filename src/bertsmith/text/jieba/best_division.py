"""Blocks of letters divided into the words of a dictionary so that the sum of scores is highest.

The sum for a place is the best of (score of a word that starts there + sum for the place after it),
from the end of a block to its start. The places that are equally far from the ends of their blocks
do not depend on each other, so one step of numpy does them all, in a whole text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.jieba.word_tree import Places, WordTree


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """The best words of a text, and all that were to choose from.

    `opens` (N,) True where a best word starts; `lone` (N,) True where it is a single letter; both
    are False outside of blocks. `starts`, `ends` (E,) are all words that stand in the blocks.
    """

    opens: NDArray[np.bool_]
    lone: NDArray[np.bool_]
    starts: Places
    ends: Places


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Letters side by side; `starts` (K,) of blocks, `order` (P,) of places for the sums,
    `steps` where each distance from the end begins in it."""

    starts: Places
    order: Places
    steps: list[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    """Words in the order of the places they start at, shorter ones first.

    `starts`, `ends`, `scores` (E,); `firsts` (P + 1,) the first word of each place of the order.
    """

    starts: Places
    ends: Places
    scores: NDArray[np.float64]
    firsts: Places


def divide(tree: WordTree, letters: NDArray[np.uint16], unknown: float) -> Division:
    """The division of `letters` (N,), in which 0 stands between blocks.

    `unknown` is the score of a letter at which no word of the dictionary starts. Of equal sums the
    one with the longer first word is taken.
    """
    blocks = _blocks(letters)
    words = _candidates(tree, letters, blocks, unknown)
    rank = np.full(len(letters) + 1, len(blocks.order), dtype=np.int32)  # the sum behind all is 0
    rank[blocks.order] = np.arange(len(blocks.order), dtype=np.int32)
    after = rank[words.ends]
    sums = _best_sums(words, after, blocks)
    best = words.scores + sums[after] == sums[:-1].repeat(words.firsts[1:] - words.firsts[:-1])
    nexts = np.zeros(len(letters) + 1, dtype=np.int32)
    nexts[words.starts[best]] = words.ends[best]  # the last one stays, and that is the longest
    opens = np.zeros(len(letters), dtype=bool)
    at = blocks.starts
    while len(at):  # one word further in every block
        opens[at] = True
        at = nexts[at]
        at = at[nexts[at] > 0]
    lone = opens & (nexts[:-1] == np.arange(1, len(letters) + 1, dtype=np.int32))
    return Division(opens, lone, words.starts, words.ends)


def _blocks(letters: NDArray[np.uint16]) -> _Blocks:
    inside = np.zeros(len(letters) + 2, dtype=bool)
    np.greater(letters, 0, out=inside[1:-1])
    places = inside[1:-1].nonzero()[0].astype(np.int32)
    borders = (inside[1:] != inside[:-1]).nonzero()[0].astype(np.int32)
    starts, ends = borders[::2], borders[1::2]
    sizes = ends - starts
    distances = ends.repeat(sizes) - places
    if sizes.max(initial=0) < 1 << 16:
        distances = distances.astype(np.uint16)  # these are sorted faster
    return _Blocks(
        starts=starts,
        order=places[distances.argsort(kind="stable")],
        steps=np.cumsum(np.bincount(distances, minlength=1)).tolist(),
    )


def _candidates(
    tree: WordTree, letters: NDArray[np.uint16], blocks: _Blocks, unknown: float
) -> _Candidates:
    found = list(tree.find(letters))
    counts = np.zeros(len(letters), dtype=np.int32)
    for places, _ in found:
        counts[places] += 1
    bare = ((counts == 0) & (letters > 0)).nonzero()[0].astype(np.int32)
    counts[bare] = 1
    firsts = np.zeros(len(blocks.order) + 1, dtype=np.int32)
    np.cumsum(counts[blocks.order], out=firsts[1:])
    total = int(firsts[-1])
    starts, ends = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    scores = np.empty(total)
    free = np.zeros(len(letters), dtype=np.int32)  # where the next word of each place goes
    free[blocks.order] = firsts[:-1]
    lengths = [1, *range(1, len(found) + 1)]
    for length, (places, values) in zip(
        lengths, [(bare, np.full(len(bare), unknown)), *found], strict=True
    ):
        slots = free[places]
        free[places] += 1
        starts[slots] = places
        ends[slots] = places + length
        scores[slots] = values
    return _Candidates(starts, ends, scores, firsts)


def _best_sums(words: _Candidates, after: Places, blocks: _Blocks) -> NDArray[np.float64]:
    """(P + 1,) for each place of the order the highest sum from there to the end of its block.

    `after` (E,) says where in the order each word ends.
    """
    sums = np.zeros(len(blocks.order) + 1)
    borders = words.firsts[blocks.steps].tolist()
    low, first = 0, 0
    for high, last in zip(blocks.steps, borders, strict=True):
        if low < high:
            sums[low:high] = np.maximum.reduceat(
                words.scores[first:last] + sums[after[first:last]],
                words.firsts[low:high] - np.int32(first),
            )
        low, first = high, last
    return sums
