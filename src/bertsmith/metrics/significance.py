"""Confidence intervals by bootstrap, variance over seeds, significance tests of two models."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bertsmith.errors import ConfigError
from bertsmith.metrics.arrays import Floats, Ints, check_rows

CONFIDENCE = 0.95

Figure = Callable[[Ints], float]
"""Row numbers, possibly repeated -> a metric of those rows."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A metric and its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """The second model's metric minus the first's, its confidence interval and its p-value."""

    value: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Spread:
    """A metric over several seeds; with one seed, the deviation and the interval are nan."""

    mean: float
    deviation: float  # of the sample: divided by count - 1
    low: float
    high: float
    count: int


def bootstrap(figure: Figure, rows: int, *, samples: int = 1000, seed: int = 0) -> Interval:
    """The percentile interval over `samples` draws of `rows` rows with replacement (Efron 1979).

    Draws whose metric is nan are left out; if none is left, the interval is nan.
    """
    values = np.array([figure(drawn) for drawn in _draws(rows, samples, seed)])
    return Interval(figure(np.arange(rows)), *_borders(values))


def paired_bootstrap(
    first: Figure, second: Figure, rows: int, *, samples: int = 1000, seed: int = 0
) -> Difference:
    """Two models on the same rows: every draw scores both (Koehn 2004; Berg-Kirkpatrick 2012).

    p is two-sided: the share of draws at least as far from the observed difference as that is from
    zero, the observation counted among the draws, so that p is never 0.
    """
    everything = np.arange(rows)
    observed = second(everything) - first(everything)
    drawn = np.array([second(some) - first(some) for some in _draws(rows, samples, seed)])
    low, high = _borders(drawn)
    if math.isnan(observed):
        return Difference(observed, low, high, math.nan)
    there = drawn[np.isfinite(drawn)]
    # Equal sums taken in another order differ in the last bits.
    far = np.abs(there - observed) >= abs(observed) - 1e-12
    return Difference(observed, low, high, float((far.sum() + 1) / (there.size + 1)))


def over_seeds(values: Sequence[float]) -> Spread:
    """Mean, standard deviation and Student's t interval of a metric over seeds."""
    if not len(values):
        raise ConfigError("there are no seeds to take a mean of")
    given = np.asarray(values, dtype=np.float64)
    mean, count = float(given.mean()), len(given)
    if count == 1:
        return Spread(mean, math.nan, math.nan, math.nan, 1)
    deviation = float(given.std(ddof=1))
    from scipy.special import stdtrit  # here, because scipy takes longer to load than all of ours

    reach = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * deviation / math.sqrt(count)
    return Spread(mean, deviation, mean - reach, mean + reach, count)


def paired_over_seeds(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Second minus first, seed by seed: the mean, Student's interval and the two-sided p.

    One seed has neither interval nor p; nor have differences that are all the same, since figures
    of few rows repeat by chance: their p is nan, or 1 if they are 0.
    """
    if len(first) != len(second):
        raise ConfigError(f"{len(first)} and {len(second)} values cannot be paired")
    spread = over_seeds([b - a for a, b in zip(first, second, strict=True)])
    if spread.count == 1 or not spread.deviation > 1e-12:
        p = 1.0 if spread.count > 1 and spread.mean == 0 else math.nan
        return Difference(spread.mean, spread.low, spread.high, p)
    from scipy.special import stdtr  # here, because scipy takes longer to load than all of ours

    t = abs(spread.mean) / (spread.deviation / math.sqrt(spread.count))
    return Difference(spread.mean, spread.low, spread.high, float(2 * stdtr(spread.count - 1, -t)))


def holm(ps: Sequence[float]) -> list[float]:
    """p-values of one table -> those after Holm's (1979) step-down correction; nan stays nan."""
    known = sorted((p, place) for place, p in enumerate(ps) if not math.isnan(p))
    adjusted = [math.nan] * len(ps)
    largest = 0.0
    for rank, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[place] = largest
    return adjusted


def mcnemar(first: ArrayLike, second: ArrayLike) -> float:
    """(N,), (N,) whether each model was right on a row -> the exact two-sided p (McNemar 1947)."""
    one, two = np.asarray(first, dtype=np.bool_), np.asarray(second, dtype=np.bool_)
    check_rows(one, two)
    only_first, only_second = int((one & ~two).sum()), int((two & ~one).sum())
    tosses, fewer = only_first + only_second, min(only_first, only_second)
    ways = np.arange(1, fewer + 1)
    # log C(n, k) as a running sum of log((n - k + 1) / k): no factorial, any n.
    logs = np.concatenate([[0.0], np.cumsum(np.log((tosses - ways + 1) / ways))])
    one_sided = float(np.exp(logs - tosses * math.log(2)).sum())
    return min(1.0, 2 * one_sided)


def _draws(rows: int, samples: int, seed: int) -> list[Ints]:
    if rows < 1 or samples < 1:
        raise ConfigError(f"a bootstrap needs rows and samples, not {rows} and {samples}")
    random = np.random.default_rng(seed)
    return [random.integers(0, rows, rows) for _ in range(samples)]


def _borders(values: Floats) -> tuple[float, float]:
    there = values[np.isfinite(values)]
    if not there.size:
        return math.nan, math.nan
    low, high = np.quantile(there, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
