"""How similarities of pairs follow scores or labels, and whether a change of vectors helped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertsmith.errors import InputFileError
from bertsmith.metrics.arrays import Floats, Ints
from bertsmith.metrics.correlation import spearman
from bertsmith.metrics.multilabel import average_precision
from bertsmith.metrics.significance import Difference, Figure, Interval, bootstrap, paired_bootstrap
from bertsmith.sentences.transform.moments import AnyVectors


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPairs:
    """Pairs of texts with what they should score: numbers, or 1 and 0 for labels.

    `first` and `second` (N,) are places in `texts`, which are distinct.
    """

    texts: Sequence[str]
    first: Ints
    second: Ints
    targets: Floats
    labeled: bool = False

    @staticmethod
    def of(
        rows: Sequence[tuple[str, ...]], targets: Floats, *, labeled: bool, source: str
    ) -> ScoredPairs:
        """Rows of two texts and their targets; refused if all targets are the same."""
        if not len(rows) or targets.min() == targets.max():
            what = "labels of one class only" if labeled else "the same score in every row"
            raise InputFileError(
                f"{source} has {what if len(rows) else 'no rows'}; pairs can only be told apart "
                "where some belong together more than others"
            )
        places: dict[str, int] = {}
        sides = [
            np.array([places.setdefault(row[side], len(places)) for row in rows]) for side in (0, 1)
        ]
        return ScoredPairs(
            texts=list(places),
            first=sides[0],
            second=sides[1],
            targets=targets,
            labeled=labeled,
        )

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def measure(self) -> str:
        """What is measured: Spearman for scores, average precision for labels."""
        return "average precision" if self.labeled else "Spearman"

    def figure(self, vectors: AnyVectors) -> Figure:
        """The measure on drawn rows, for vectors (n, D) of the texts compared by cosine."""
        near = cosines(vectors[self.first], vectors[self.second])
        gold = self.targets

        def of(drawn: Ints) -> float:
            if not self.labeled:
                return spearman(gold[drawn], near[drawn])
            wanted = gold[drawn, None] > 0
            return float(average_precision(wanted, near[drawn, None])[0])

        return of

    def score(self, vectors: AnyVectors) -> float:
        """The measure on all rows."""
        return self.figure(vectors)(np.arange(len(self)))

    def interval(self, vectors: AnyVectors) -> Interval:
        """The measure and its 95 % interval."""
        return bootstrap(self.figure(vectors), len(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A measure before and after a change of the vectors, on the same pairs."""

    measure: str
    pairs: int
    before: float
    after: float
    difference: Difference

    @property
    def verdict(self) -> str:
        """Whether the change helped, harmed, or made no clear difference."""
        if self.difference.low > 0:
            return "helped"
        return "harmed" if self.difference.high < 0 else "made no clear difference"


def change(pairs: ScoredPairs, before: AnyVectors, after: AnyVectors) -> Change:
    """Vectors of the pairs' texts before and after, by paired bootstrap."""
    figures = pairs.figure(before), pairs.figure(after)
    everything = np.arange(len(pairs))
    return Change(
        measure=pairs.measure,
        pairs=len(pairs),
        before=figures[0](everything),
        after=figures[1](everything),
        difference=paired_bootstrap(figures[0], figures[1], len(pairs)),
    )


def cosines(first: AnyVectors, second: AnyVectors) -> Floats:
    """The cosine of each row of one with the same row of the other: (N, D), (N, D) -> (N,)."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    result: Floats = (one * two).sum(axis=1) / np.maximum(norms, 1e-24)
    return result
