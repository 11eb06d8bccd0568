"""Where a cache holds what: sources in groups of about equal length, live rows in slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

# Padded places that a group of sources may have: reading them costs as much as one more group.
SPARE_PLACES = 256


@dataclass(slots=True)
class SourceGroup:
    """Sources that are attended to in one call, each at the end of `width` places."""

    texts: list[int]  # numbers of the sources, by their place in the group
    width: int
    index: Numbers | None  # (b * width,) row of each place in the first pass, None: in order
    start: int  # the group's first row in the first pass
    count: int  # and how many it has there


@dataclass(frozen=True, slots=True)
class Moves:
    """How a cache changes to hold other live rows."""

    sources: Numbers  # (R',) the old slot of what each new slot holds
    order: Numbers  # (R',) the new slot of each live row
    groups: tuple[
        tuple[Numbers, Numbers, int], ...
    ]  # places to copy to and from, and how many stay
    to: Numbers  # slots that change, and what they take
    taken: Numbers
    in_place: bool  # nothing that is taken is overwritten


def source_groups(lengths: Sequence[int]) -> list[SourceGroup]:
    """Neighboring sources in groups; sources sorted by length need the fewest."""
    groups: list[SourceGroup] = []
    first = start = 0
    for last in range(1, len(lengths) + 1):
        if last < len(lengths):
            run = lengths[first : last + 1]
            if max(run) * len(run) - sum(run) <= SPARE_PLACES:
                continue
        groups.append(_group(first, lengths[first:last], start))
        start += groups[-1].count
        first = last
    return groups


def _group(first: int, lengths: Sequence[int], start: int) -> SourceGroup:
    width, count = max(lengths), sum(lengths)
    index = None
    if width * len(lengths) > count:
        sizes = np.array(lengths, dtype=np.int64)[:, None]
        places = np.arange(width) - (width - sizes)  # padding in front repeats the first row
        index = (np.cumsum(sizes)[:, None] - sizes + places.clip(min=0)).ravel()
    return SourceGroup(list(range(first, first + len(lengths))), width, index, start, count)


def rearranged(slots: Numbers, texts: Numbers, groups: Sequence[SourceGroup]) -> Moves:
    """How the old `slots` (R',) of the live rows become the only ones; changes `groups`.

    `texts` are the sources of the old slots. The rows of a source stay side by side, sources
    stay in their group, and what can stay in its place does.
    """
    wanted = texts[slots]
    live = set(wanted.tolist())
    group_moves = tuple(_closed_up(group, live) for group in groups)
    if groups:
        place = {text: n for n, text in enumerate(t for group in groups for t in group.texts)}
        rank = np.array([place[text] for text in wanted.tolist()], dtype=np.int64)
        counts = np.bincount(rank, minlength=len(place))
    else:  # rows have nothing in common
        rank, counts = np.zeros(len(slots), np.int64), np.array([len(slots)])
    ends = np.cumsum(counts)
    firsts = ends - counts
    order = np.full(len(slots), -1, dtype=np.int64)
    taken = np.zeros(len(slots), dtype=bool)
    for row, (slot, text) in enumerate(zip(slots.tolist(), rank.tolist(), strict=True)):
        if firsts[text] <= slot < ends[text] and not taken[slot]:
            order[row] = slot
            taken[slot] = True
    left = np.flatnonzero(order < 0)
    free = np.flatnonzero(~taken)
    # Free slots ascend with the rank of their source, so rows sorted by rank fit one by one.
    order[left[np.argsort(rank[left], kind="stable")]] = free
    sources = np.empty(len(slots), dtype=np.int64)
    sources[order] = slots
    to = np.flatnonzero(sources != np.arange(len(sources)))
    from_slots = sources[to]
    in_place = not np.isin(from_slots, to).any()
    return Moves(sources, order, group_moves, to, from_slots, bool(in_place))


def _closed_up(group: SourceGroup, live: set[int]) -> tuple[Numbers, Numbers, int]:
    """Sources without live rows leave a group; the last ones take their places."""
    count = sum(text in live for text in group.texts)
    holes = [place for place in range(count) if group.texts[place] not in live]
    movers = [place for place in range(count, len(group.texts)) if group.texts[place] in live]
    for hole, mover in zip(holes, movers, strict=True):
        group.texts[hole] = group.texts[mover]
    del group.texts[count:]
    return np.array(holes, np.int64), np.array(movers, np.int64), count
