"""The best spans of many passages: exact, and without a loop over pairs of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertsmith.tasks.feature import Feature, Numbers
from bertsmith.tasks.task import Logits
from bertsmith.text.encoding import Ints

AT_ONCE = 128  # passages; their table of scores stays in the cache

Truths = NDArray[np.bool_]


class Spans(NamedTuple):
    """Spans of passages, all (N,): the passage, the first and the last row, the score."""

    passages: Numbers
    starts: Numbers
    ends: Numbers
    scores: Logits


def best_spans(
    logits: Sequence[Logits], features: Sequence[Feature], *, longest: int, count: int
) -> Spans:
    """The `count` best spans of each passage, of at most `longest` tokens of its context.

    (L, 2) logits of each feature -> Spans, scored start + end. Every pair is considered, not only
    the best starts with the best ends: ranked by the best end that each can reach, a running
    maximum, the first `count` starts hold the `count` best pairs.
    """
    may_start, may_end = _allowed(features, longest)
    parts = []
    for first in range(0, len(logits), AT_ONCE):
        here = slice(first, first + AT_ONCE)
        starts = _table([one[:, 0] for one in logits[here]], may_start[here])  # (F, M)
        ends = _table([one[:, 1] for one in logits[here]], may_end[here])
        best = _best(starts, ends, longest=min(longest, starts.shape[1]), count=count)
        parts.append(best._replace(passages=best.passages + first))
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Spans(none, none, none, np.zeros(0, dtype=np.float32))
    return Spans(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _allowed(features: Sequence[Feature], longest: int) -> tuple[list[Truths], list[Truths]]:
    """Where a span of each feature may start, and where it may end: (L,) each.

    Both only at tokens of the context that have a character. Overlapping windows show a token
    several times; a span may start at it in one of them only.
    """
    windows: dict[int, list[int]] = {}
    for number, feature in enumerate(features):
        windows.setdefault(feature.example, []).append(number)
    may_end = [_solid(feature) for feature in features]
    may_start = list(may_end)
    for numbers in windows.values():
        if len(numbers) > 1:
            masks = _most_context([_units(features[number]) for number in numbers], longest)
            for number, mask in zip(numbers, masks, strict=True):
                may_start[number] = may_end[number] & mask
    return may_start, may_end


def _solid(feature: Feature) -> Truths:
    offsets = feature.encoding.offsets
    solid: Truths = (_units(feature) >= 0) & (offsets[:, 0] < offsets[:, 1])
    return solid


def _units(feature: Feature) -> Ints:
    if feature.units is None:
        raise TypeError(
            "a feature of question answering needs units, the context token of each row"
        )
    return feature.units


def _most_context(windows: Sequence[Ints], longest: int) -> list[Truths]:
    """For each token of each window, whether this is the window where a span may start at it.

    The one with the most context on the poorer side (Devlin et al. 2018), but before that with room
    for a span of `longest` tokens: a span that is whole in some window is always considered.
    """
    context_rows = [np.flatnonzero(units >= 0) for units in windows]
    total = 1 + max(int(units.max()) for units in windows)
    most = np.full(total, -1)
    where = np.zeros(total, dtype=np.int64)
    for number, (units, rows) in enumerate(zip(windows, context_rows, strict=True)):
        left = np.arange(len(rows))
        right = left[::-1]
        context = np.minimum(right, longest - 1) * total + np.minimum(left, right)
        tokens = units[rows]
        better = context > most[tokens]
        most[tokens[better]] = context[better]
        where[tokens[better]] = number
    masks = []
    for number, (units, rows) in enumerate(zip(windows, context_rows, strict=True)):
        mask = np.zeros(len(units), dtype=np.bool_)
        mask[rows] = where[units[rows]] == number
        masks.append(mask)
    return masks


def _table(scores: Sequence[Logits], allowed: Sequence[Truths]) -> Logits:
    """Scores of passages as one rectangle (F, M); -inf where a span may not start or end."""
    lengths = np.array([len(one) for one in scores])
    held = np.arange(lengths.max()) < lengths[:, None]
    table = np.full(held.shape, -np.inf, dtype=np.float32)
    table[held] = np.where(np.concatenate(allowed), np.concatenate(scores), -np.inf)
    return table


def _best(starts: Logits, ends: Logits, *, longest: int, count: int) -> Spans:
    """(F, M) starts, (F, M) ends -> the best spans of each of the F passages."""
    passages, width = starts.shape
    few = min(count, width)
    first = _top(starts + _running_maximum(ends, longest), few)  # (F, few)
    last = first[:, :, None] + np.arange(longest)  # (F, few, longest)
    each = np.arange(passages)[:, None, None]
    reached = np.where(last < width, ends[each, np.minimum(last, width - 1)], -np.inf)
    scores = np.take_along_axis(starts, first, axis=1)[:, :, None] + reached
    scores = scores.reshape(passages, -1).astype(np.float32)
    chosen = _top(scores, min(count, scores.shape[1]))  # (F, count)
    values = np.take_along_axis(scores, chosen, axis=1)
    begin = np.take_along_axis(first, chosen // longest, axis=1)
    real = values > -np.inf
    numbers = np.broadcast_to(np.arange(passages)[:, None], values.shape)
    return Spans(numbers[real], begin[real], (begin + chosen % longest)[real], values[real])


def _top(scores: Logits, count: int) -> Numbers:
    """The places of the `count` largest of each row, in no order: (F, M) -> (F, count)."""
    if count == scores.shape[1]:
        return np.broadcast_to(np.arange(count), scores.shape)
    places: Numbers = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    return places


def _running_maximum(values: Logits, width: int) -> Logits:
    """The largest of values[m : m + width] for each m: (F, M) -> (F, M)."""
    best = values
    reached = 1
    while reached < width:
        step = min(reached, width - reached)
        ahead = np.full_like(best, -np.inf)
        ahead[:, :-step] = best[:, step:]
        best = np.maximum(best, ahead)
        reached += step
    return best
