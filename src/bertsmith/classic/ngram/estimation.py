"""Interpolated modified Kneser-Ney (Chen and Goodman 1998) with the conventions of kenlm's lmplz.

Raw counts for the highest order and for n-grams that begin a line, else the number of different
words to the left; one set of three discounts per order from the counts of counts; unigrams are
interpolated with the uniform distribution over all words, the unknown one and the end of a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from bertsmith.classic.ngram.counting import Ints, Numbers, OrderCounts, count_orders
from bertsmith.classic.stream.stream import WordStream
from bertsmith.config import Settings
from bertsmith.errors import ConfigError

Threshold = Annotated[int, Field(ge=0)]
Floats = NDArray[np.float64]
FALLBACK = (0.5, 1.0, 1.5)


class NgramSettings(Settings):
    """Interpolated modified Kneser-Ney, as kenlm's lmplz estimates it.

    `prune`: n-grams seen no more often are left out, by order from 1; the last number holds for
    the orders after it. `fallback`: use the discounts .5, 1 and 1.5 where the text is too small or
    too regular to compute them.
    """

    order: Annotated[int, Field(ge=1, le=12)] = 5
    prune: tuple[Threshold, ...] = ()
    fallback: bool = False

    @model_validator(mode="after")
    def _rising(self) -> Self:
        given = self.prune
        if len(given) > self.order:
            raise ValueError(f"prune has {len(given)} numbers for order {self.order}")
        if given and given[0] != 0:
            raise ValueError("prune must begin with 0: words are left out by the minimum count")
        if any(low > high for low, high in pairwise(given)):
            raise ValueError("prune must not fall: an n-gram needs the shorter ones inside it")
        return self

    def thresholds(self) -> tuple[int, ...]:
        """One number per order."""
        last = self.prune[-1] if self.prune else 0
        return (*self.prune, *[last] * (self.order - len(self.prune)))


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedOrder:
    """The n-grams that are kept of one order.

    `keys` (K,) sorted, see `counting`; `logs` (K,) natural logarithms of their probabilities;
    `backoffs` (K,) of what their probabilities as contexts are multiplied with, None for the
    highest order; `discounts` for counts of 1, 2 and more, None if they are not known; `found`
    n-grams before pruning.
    """

    keys: Ints
    logs: Floats
    backoffs: Floats | None
    discounts: tuple[float, float, float] | None
    found: int


@dataclass(slots=True, eq=False)
class _Order:
    """One order between counting and writing; arrays are dropped as soon as they are used."""

    length: int
    counts: OrderCounts
    kept: NDArray[np.bool_] | None = None
    chances: Floats | None = None
    weights: Floats | None = None  # of this order's n-grams as contexts of the next one
    discounts: tuple[float, float, float] = FALLBACK


def estimate(
    stream: WordStream,
    settings: NgramSettings,
    progress: Callable[[int, str], None] = lambda order, step: None,
) -> Iterator[EstimatedOrder]:
    """The orders of a model from 1 up, each as soon as it is known, so that few are in memory."""
    thresholds = settings.thresholds()
    below: _Order | None = None  # estimated but for its weights as contexts
    counted: _Order | None = None  # counted only
    numbers: Numbers | None = None  # of kept n-grams of the order that was written last
    for length, counts in enumerate(count_orders(stream, settings.order), start=1):
        progress(length, "counted")
        if counted is not None:
            different = np.bincount(counts.suffix, minlength=len(counted.counts.keys))
            _estimate(counted, _adjusted(counted, different), below, settings)
            if below is not None:
                order, numbers = _finished(below, numbers)
                yield order
            below = counted
        counted = _Order(length, counts)
        if thresholds[length - 1]:
            counted.kept = counts.raw > thresholds[length - 1]
    if counted is None:
        return
    _estimate(counted, _adjusted(counted, counted.counts.raw), below, settings)
    if below is not None:
        order, numbers = _finished(below, numbers)
        yield order
    yield _finished(counted, numbers)[0]


def _adjusted(order: _Order, counts: Ints) -> Ints:
    """`counts`, but raw ones where a line begins, and none for the beginning alone."""
    begins = order.counts.begins
    return np.where(begins, 0 if order.length == 1 else order.counts.raw, counts)


def discounts_of(
    adjusted: Ints, length: int, settings: NgramSettings
) -> tuple[float, float, float]:
    """What is taken from counts of 1, 2 and more; refuses counts that have no such discounts."""
    n = [int(one) for one in np.bincount(np.minimum(adjusted, 5), minlength=5)[:5]]
    what = f"{length}-grams" if length > 1 else "words"
    way = "give more text, a lower order, or set fallback to use the discounts 0.5, 1 and 1.5"
    for count in (1, 2, 3):
        if n[count] == 0:
            if settings.fallback:
                return FALLBACK
            raise ConfigError(
                f"Kneser-Ney discounts cannot be computed: no {what} with an adjusted count of "
                f"{count} in the text, which is too small or too regular; {way}"
            )
    share = n[1] / (n[1] + 2 * n[2])
    found = [count - (count + 1) * share * n[count + 1] / n[count] for count in (1, 2, 3)]
    for count, one in enumerate(found, start=1):
        if not 0 <= one <= count:
            if settings.fallback:
                return FALLBACK
            raise ConfigError(
                f"Kneser-Ney discounts cannot be computed: that of {what} with a count of {count} "
                f"would be {one:.4f}, outside 0 to {count}; {way}"
            )
    return found[0], found[1], found[2]


def _estimate(order: _Order, adjusted: Ints, below: _Order | None, settings: NgramSettings) -> None:
    """Fill in discounts and probabilities of an order, and the weights of the one below."""
    counts = order.counts
    order.discounts = discounts_of(adjusted, order.length, settings)
    taken = np.array([0.0, *order.discounts])[np.minimum(adjusted, 3)]
    size = 1 if below is None else len(below.counts.keys)
    sums = np.bincount(counts.context, weights=adjusted, minlength=size)
    spread = taken if order.kept is None else np.where(order.kept, taken, adjusted)
    free = np.bincount(counts.context, weights=spread, minlength=size)
    weights = np.where(sums > 0, free / np.where(sums > 0, sums, 1.0), 1.0)
    chances = (adjusted - taken) / sums[counts.context]
    if below is None:
        chances += weights[0] / (len(counts.keys) - 1)  # every word but the start of a line
        chances[counts.begins] = 1.0  # never predicted; ARPA files have 0 for it
    else:
        if below.chances is None:
            raise TypeError("orders are estimated from the lowest up")
        chances += weights[counts.context] * below.chances[counts.suffix]
        below.weights = weights
    order.chances = chances


def _finished(order: _Order, numbers: Numbers | None) -> tuple[EstimatedOrder, Numbers | None]:
    """What is written of an order, and the new numbers of its n-grams if some were pruned."""
    counts, chances, weights = order.counts, order.chances, order.weights
    if chances is None:
        raise TypeError("an order is finished after it was estimated")
    keys, after = counts.keys, None
    found = len(keys)
    if order.length > 1 and numbers is not None:  # suffixes have other numbers
        left = keys // counts.below
        keys = left * (int(numbers[-1]) + 1) + numbers[counts.suffix]
    if order.kept is not None:
        keys, chances = keys[order.kept], chances[order.kept]
        weights = None if weights is None else weights[order.kept]
        after = np.cumsum(order.kept, dtype=np.int32) - np.int32(1)
    order.chances = order.weights = None
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
        backoffs = None if weights is None else np.log(weights)
    return EstimatedOrder(keys, logs, backoffs, order.discounts, found), after
