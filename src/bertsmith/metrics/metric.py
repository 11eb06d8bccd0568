"""A metric: one table row per example, and the figures of any subset of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bertsmith.errors import unknown
from bertsmith.metrics.arrays import Floats, Ints

LOWER_IS_BETTER = frozenset({"mse", "nll", "ece", "brier", "loss"})


@dataclass(frozen=True, slots=True)
class Metric:
    """Figures by name, the main one first, computed from a table that bootstrap samples reuse."""

    main: str
    rows: Callable[[Any, Any, Sequence[str]], Floats]
    """Targets, predictions, labels -> (N, S), the contribution of each row."""
    figures: Callable[[Floats, Sequence[str]], dict[str, float]]
    """(any number of those rows, S), labels -> the figures."""
    drawn: Callable[[Floats, Sequence[str]], Callable[[Ints], float]] | None = None
    """A faster main figure for the bootstrap: rows, labels -> (row numbers -> figure)."""

    def score(self, targets: Any, predictions: Any, labels: Sequence[str] = ()) -> dict[str, float]:
        """Every figure of all rows; `next(iter(...))` is the main one."""
        return self.figures(self.rows(targets, predictions, labels), labels)

    def figure(
        self, targets: Any, predictions: Any, labels: Sequence[str] = (), name: str | None = None
    ) -> Callable[[Ints], float]:
        """One figure (the main one) as a function of row numbers, as `bootstrap` takes it.

        nan where the figure is undefined for the drawn rows.
        """
        table = self.rows(targets, predictions, labels)
        wanted = name or self.main
        known = self.figures(table, labels)
        if wanted not in known:
            raise unknown("figure", wanted, known)
        return lambda rows: self.figures(table[rows], labels).get(wanted, math.nan)


def better(name: str, new: float, old: float) -> bool:
    """Whether a new value of a figure beats the old one; nan is worse than any number."""
    if math.isnan(new):
        return False
    if math.isnan(old):
        return True
    return new < old if name in LOWER_IS_BETTER else new > old
