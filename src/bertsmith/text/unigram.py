"""Deterministic Unigram vocabulary training (Kudo 2018, arXiv:1804.10959).

The Rust trainer depends on the order of a hash table; this one works on sorted words with numpy:
take all frequent substrings, fit their probabilities by expectation maximization, drop the pieces
whose removal costs least, and repeat down to the target size.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertsmith.text.counting import Progress

logger = logging.getLogger(__name__)

LONGEST_PIECE = 16
LONGEST_WORD = 24  # probabilities of longer words would leave the range of a float
MOST_CHARACTERS = 1_500_000  # of different words; the most frequent ones come first
KEEP = 0.75
ROUNDS = 2
SMALLEST = 1e-9  # keeps a whole word's probability well above the smallest float

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Lattice:
    """Every word with all pieces that occur in it.

    `pieces[k]` (N,) is the piece of k + 1 characters that starts at each character, or -1; `starts`
    and `lengths` (W,) are the words, longest first.
    """

    pieces: list[Numbers]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


def learn_unigram(
    words: dict[str, int], size: int, progress: Progress | None = None
) -> list[tuple[str, float]]:
    """At most `size` pieces with their log probabilities, most probable first."""
    counts = _short_words(words)
    letters = _letters(counts, size)
    chosen = {word: count for word, count in counts.items() if all(c in letters for c in word)}
    pieces = _seeds(chosen, letters, max(4 * size, 20_000))
    weights = np.array(list(chosen.values()), dtype=np.float64)
    texts = list(chosen)
    seen = len(pieces)
    lattice, order = _lattice(texts, pieces)
    while True:
        expected = np.ones(len(pieces))
        probabilities = _probabilities(np.array(list(pieces.values()), dtype=np.float64))
        for _ in range(ROUNDS):
            expected = _expected(lattice, probabilities, weights[order])
            probabilities = _probabilities(expected)
        if progress is not None:
            progress("pruning", seen - len(pieces), max(seen - size, 1))
        if len(pieces) <= size:
            break
        left = _prune(pieces, expected, probabilities, max(size, int(len(pieces) * KEEP)))
        lattice = _renamed(lattice, pieces, left)
        pieces = left
    scores = np.round(np.log(probabilities), 6).tolist()
    return sorted(zip(pieces, scores, strict=True), key=lambda item: (-item[1], item[0]))


def _short_words(words: dict[str, int]) -> dict[str, int]:
    """Words cut into stretches a float can hold, and no more of them than memory allows."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start in range(0, len(word), LONGEST_WORD):
            counts[word[start : start + LONGEST_WORD]] += count
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    chosen: dict[str, int] = {}
    room = MOST_CHARACTERS
    for word, count in ranked:
        room -= len(word)
        if room < 0:
            logger.warning("%d of %d words, the most frequent, are used", len(chosen), len(ranked))
            break
        chosen[word] = count
    return chosen


def _letters(counts: dict[str, int], size: int) -> set[str]:
    """The characters the vocabulary can hold, most frequent first."""
    letters: Counter[str] = Counter()
    for word, count in counts.items():
        for letter in word:
            letters[letter] += count
    ranked = sorted(letters, key=lambda letter: (-letters[letter], letter))
    if len(ranked) > size:
        logger.warning("%d rare characters do not fit into the vocabulary", len(ranked) - size)
    return set(ranked[:size])


def _seeds(counts: dict[str, int], letters: set[str], most: int) -> dict[str, float]:
    """All characters, and the substrings that occur at least twice and cover most text."""
    substrings: Counter[str] = Counter()
    for length in range(1, LONGEST_PIECE + 1):
        level: Counter[str] = Counter()
        for word, count in counts.items():
            for start in range(len(word) - length + 1):
                level[word[start : start + length]] += count
        frequent = {p: n for p, n in level.items() if length == 1 or n > 1}
        if not frequent:
            break
        substrings.update(frequent)
        if len(substrings) > 4 * most:
            substrings = Counter(dict(sorted(substrings.items(), key=_cover)[: 2 * most]))
    ranked = [(p, float(n)) for p, n in sorted(substrings.items(), key=_cover) if len(p) > 1]
    singles = [(letter, float(substrings.get(letter, 1))) for letter in sorted(letters)]
    return dict(singles + ranked[: max(most - len(singles), 0)])


def _cover(item: tuple[str, int]) -> tuple[bool, int, str]:
    piece, count = item
    return len(piece) > 1, -count * len(piece), piece


def _lattice(texts: list[str], pieces: dict[str, float]) -> tuple[_Lattice, NDArray[np.int64]]:
    """The lattice of the texts, and the order in which it holds them."""
    order = np.array(sorted(range(len(texts)), key=lambda i: -len(texts[i])), dtype=np.int64)
    lengths = np.array([len(texts[i]) for i in order], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1].astype(np.int64)
    number = {piece: i for i, piece in enumerate(pieces)}
    total = int(lengths.sum())
    fits = [np.full(total, -1, dtype=np.int32) for _ in range(LONGEST_PIECE)]
    for start, i in zip(starts.tolist(), order.tolist(), strict=True):
        word = texts[i]
        for first in range(len(word)):
            for length in range(1, min(LONGEST_PIECE, len(word) - first) + 1):
                piece = number.get(word[first : first + length])
                if piece is not None:
                    fits[length - 1][start + first] = piece
    return _Lattice(fits, starts, lengths), order


def _renamed(lattice: _Lattice, old: dict[str, float], new: dict[str, float]) -> _Lattice:
    """The same lattice with fewer pieces, under their new numbers."""
    number = {piece: i for i, piece in enumerate(new)}
    table = np.array([number.get(piece, -1) for piece in old] + [-1], dtype=np.int32)
    return _Lattice([table[fits] for fits in lattice.pieces], lattice.starts, lattice.lengths)


def _probabilities(expected: Floats) -> Floats:
    """Probabilities from expected counts."""
    probabilities: Floats = np.maximum(expected / max(float(expected.sum()), SMALLEST), SMALLEST)
    return probabilities


def _forward(lattice: _Lattice, probabilities: Floats, whole: bool = True) -> Floats:
    """(W,) -> (W, longest + 1): the probability of the first 0, 1, 2 ... characters of each word.

    Without `whole`, pieces that cover an entire word do not count.
    """
    longest = int(lattice.lengths.max(initial=0))
    ahead = np.zeros((len(lattice.starts), longest + 1))
    ahead[:, 0] = 1.0
    padded = np.append(probabilities, 0.0)  # piece -1 has probability 0
    for end in range(1, longest + 1):
        rows = int(np.searchsorted(-lattice.lengths, -end, side="right"))  # words that long
        for length in range(1, min(LONGEST_PIECE, end) + 1):
            piece = lattice.pieces[length - 1][lattice.starts[:rows] + end - length]
            gain = ahead[:rows, end - length] * padded[piece]
            if not whole and length == end:
                gain[lattice.lengths[:rows] == end] = 0.0
            ahead[:rows, end] += gain
    return ahead


def _expected(lattice: _Lattice, probabilities: Floats, weights: Floats) -> Floats:
    """How often each piece is expected in the corpus under the present probabilities."""
    ahead = _forward(lattice, probabilities)
    longest = ahead.shape[1] - 1
    words = np.arange(len(lattice.starts))
    totals = ahead[words, lattice.lengths]
    behind = np.zeros_like(ahead)
    behind[words, lattice.lengths] = np.divide(
        weights, totals, where=totals > 0, out=np.zeros_like(totals)
    )
    padded = np.append(probabilities, 0.0)
    expected = np.zeros(len(padded))
    for start in range(longest - 1, -1, -1):
        rows = int(np.searchsorted(-lattice.lengths, -start, side="left"))  # words longer than that
        for length in range(1, min(LONGEST_PIECE, longest - start) + 1):
            fit = int(np.searchsorted(-lattice.lengths[:rows], -(start + length), side="right"))
            piece = lattice.pieces[length - 1][lattice.starts[:fit] + start]
            gain = behind[:fit, start + length] * padded[piece]
            behind[:fit, start] += gain
            expected += np.bincount(
                np.where(piece < 0, len(probabilities), piece),
                weights=gain * ahead[:fit, start],
                minlength=len(padded),
            )
    return expected[:-1]


def _prune(
    pieces: dict[str, float], expected: Floats, probabilities: Floats, keep: int
) -> dict[str, float]:
    """The `keep` pieces whose removal would cost most; single characters always stay."""
    names = list(pieces)
    lattice, order = _lattice(names, pieces)
    ahead = _forward(lattice, probabilities, whole=False)
    instead = np.empty(len(names))
    instead[order] = ahead[np.arange(len(names)), lattice.lengths]
    loss = expected * (np.log(probabilities) - np.log(np.maximum(instead, 1e-300)))
    ranked = sorted(
        range(len(names)), key=lambda i: (len(names[i]) > 1, -float(loss[i]), names[i])
    )[:keep]
    counts = np.maximum(expected, SMALLEST)
    return {names[i]: float(counts[i]) for i in ranked}
