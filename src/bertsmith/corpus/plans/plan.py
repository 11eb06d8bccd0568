"""An epoch's examples as arrays: which stretches of the corpus make which example."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertsmith.corpus.rows import Flags, Longs
from bertsmith.random_keys import Floats, key_of, uniforms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """Examples as parts, each a range of the corpus's tokens.

    Example e has the parts `first[e]` to `first[e + 1] - 1`; part q is `starts[q]` to
    `stops[q] - 1`. `labels` (E,) say what became of a pair: 0 right, 1 random or swapped.
    """

    first: Longs
    starts: Longs
    stops: Longs
    labels: Longs | None = None

    @property
    def count(self) -> int:
        """E, the number of examples."""
        return len(self.first) - 1

    def parts(self, numbers: Longs) -> tuple[Longs, Longs]:
        """The parts of some examples, one after another, and how many each has."""
        counts = self.first[numbers + 1] - self.first[numbers]
        return spread(self.first[numbers], counts), counts

    def tokens(self, numbers: Longs) -> Longs:
        """The tokens of some examples, special ones not counted."""
        parts, counts = self.parts(numbers)
        sums = np.concatenate([[0], np.cumsum(self.stops[parts] - self.starts[parts])])
        ends = np.cumsum(counts)
        lengths: Longs = sums[ends] - sums[ends - counts]
        return lengths


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Pairs in the order they were made: A and B as token ranges, and the `owner` of each."""

    a: tuple[Longs, Longs]
    b: tuple[Longs, Longs]
    labels: Longs
    owner: Longs

    def plan(self, *, swap: Flags | None = None, labeled: bool) -> Plan:
        """A plan in the order of the owners; where `swap`, B stands before A with label 1."""
        order = np.argsort(self.owner, kind="stable")
        starts = np.stack([self.a[0], self.b[0]], axis=1)
        stops = np.stack([self.a[1], self.b[1]], axis=1)
        labels = self.labels
        if swap is not None:
            starts[swap], stops[swap] = starts[swap, ::-1], stops[swap, ::-1]
            labels = swap.astype(np.int64)
        return Plan(
            first=np.arange(0, 2 * len(order) + 1, 2),
            starts=starts[order].ravel(),
            stops=stops[order].ravel(),
            labels=labels[order] if labeled else None,
        )


def spread(starts: Longs, counts: Longs) -> Longs:
    """Ranges written out: `counts[i]` numbers from `starts[i]` on, one range after another."""
    shift = starts - (np.cumsum(counts) - counts)
    return np.repeat(shift, counts) + np.arange(int(counts.sum()))


def gathered(parts: list[Pairs]) -> Pairs:
    """Several collections of pairs as one."""

    def join(arrays: list[Longs]) -> Longs:
        return np.concatenate([np.empty(0, dtype=np.int64), *arrays])

    return Pairs(
        a=(join([p.a[0] for p in parts]), join([p.a[1] for p in parts])),
        b=(join([p.b[0] for p in parts]), join([p.b[1] for p in parts])),
        labels=join([p.labels for p in parts]),
        owner=join([p.owner for p in parts]),
    )


class StepDraws:
    """Random numbers of one step, one for each owner that is still at work."""

    def __init__(self, key: int, owners: Longs, step: int) -> None:
        self._key = key
        self._owners = owners
        self._step = step

    def __call__(self, stream: str) -> Floats:
        """A number in [0, 1) for each owner."""
        return uniforms(key_of(self._key, stream, self._step), self._owners)


def targets(draws: StepDraws, room: int, short: float) -> Longs:
    """How long each example should be: `room`, or anything from 2 on for a share of `short`."""
    drawn = 2 + (draws("length") * (room - 1)).astype(np.int64)
    return np.where(draws("short") < short, drawn, room)
