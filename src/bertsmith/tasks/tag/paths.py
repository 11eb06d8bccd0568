"""Viterbi decoding and tag probabilities of many sequences at once, in numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGE = 1e30  # replaces infinity, so that no logits make the sum of a path nan
LEAST = 1e-30  # the least weight of a legal step or tag: products of two stay above 0
WIDE = 1 << 18  # numbers of one step
DEEP = 1 << 24  # numbers that wait for the way back


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Log scores of the first tag (C,), of transitions from row to column (C, C), of the last (C,).

    -inf where that is not legal.
    """

    start: Floats
    between: Floats
    end: Floats

    def __add__(self, other: Steps) -> Steps:
        return Steps(self.start + other.start, self.between + other.between, self.end + other.end)


def best_paths(logits: Floats, sizes: Ints, steps: Steps) -> tuple[Ints, Floats]:
    """(M, C) of sequences of `sizes` (R,), one after another -> tags (M,) and their chances (M,).

    The tags are the best sequence as a whole (Viterbi 1967). A chance is that of one tag, summed
    over all legal sequences.
    """
    logits = np.nan_to_num(logits.astype(np.float64), nan=-LARGE, posinf=LARGE, neginf=-LARGE)
    tags = np.zeros(len(logits), dtype=np.int64)
    chances = np.zeros(len(logits))
    weights = np.maximum(np.exp(logits - logits.max(axis=1, keepdims=True)), LEAST)
    firsts = np.cumsum(sizes) - sizes
    order = np.argsort(-sizes, kind="stable")
    for block in _blocks(sizes[order], logits.shape[1]):
        chosen = order[block]
        places = _places(firsts[chosen], sizes[chosen])
        _viterbi(logits, places, steps, tags)
        _chances(weights, places, steps, tags, chances)
    return tags, chances


def _blocks(sizes: Ints, tags: int) -> Iterator[slice]:
    """Sequences, the longest first, in blocks that bound the memory."""
    at = 0
    while at < len(sizes) and sizes[at]:
        count = max(1, min(WIDE // (tags * tags), DEEP // (int(sizes[at]) * tags)))
        yield slice(at, at + count)
        at += count


def _places(firsts: Ints, sizes: Ints) -> list[Ints]:
    """For each step the rows of the sequences that are at least so long."""
    alive = np.searchsorted(-sizes, -np.arange(int(sizes[0])), side="left")
    return [firsts[:count] + step for step, count in enumerate(alive.tolist())]


def _viterbi(logits: Floats, places: list[Ints], steps: Steps, tags: Ints) -> None:
    """Write the best tags of the sequences of one block."""
    into = np.ascontiguousarray(steps.between.T)  # (to, from): the search runs along memory
    score = steps.start + logits[places[0]]  # (A, C)
    back = []
    for rows in places[1:]:
        paths = score[: len(rows), None, :] + into  # (a, to, from)
        best = paths.argmax(axis=2)
        back.append(best.astype(np.int16))
        reached = np.take_along_axis(paths, best[:, :, None], axis=2)[:, :, 0]
        score[: len(rows)] = reached + logits[rows]
    last = (score + steps.end).argmax(axis=1)  # (A,)
    for step in range(len(places) - 1, -1, -1):
        rows = places[step]
        tags[rows] = last[: len(rows)]
        if step:
            here = last[: len(rows)]
            last[: len(rows)] = back[step - 1][np.arange(len(rows)), here]


def _chances(
    weights: Floats, places: list[Ints], steps: Steps, tags: Ints, chances: Floats
) -> None:
    """Write the chance of each tag: forward and backward sums, each row scaled to add up to 1."""
    start, between, end = (_weights(part) for part in (steps.start, steps.between, steps.end))
    forward = [_scaled(start * weights[places[0]])]
    for rows in places[1:]:
        forward.append(_scaled(forward[-1][: len(rows)] @ between * weights[rows]))
    behind = np.broadcast_to(_scaled(end[None]), forward[0].shape).copy()  # (A, C)
    for step in range(len(places) - 1, -1, -1):
        rows = places[step]
        here = forward[step] * behind[: len(rows)]  # (a, C)
        chosen = np.take_along_axis(here, tags[rows][:, None], axis=1)[:, 0]
        chances[rows] = chosen / np.maximum(here.sum(axis=1), np.finfo(np.float64).tiny)
        if step:
            behind[: len(rows)] = _scaled((weights[rows] * behind[: len(rows)]) @ between.T)


def _weights(scores: Floats) -> Floats:
    """exp of scores, the largest 1; 0 for what is not legal and for nothing else."""
    raised = np.exp(scores - scores.max())
    return np.where(np.isneginf(scores), 0.0, np.maximum(raised, LEAST))


def _scaled(rows: Floats) -> Floats:
    scaled: Floats = rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return scaled
