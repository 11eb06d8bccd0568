"""A metric: the part of each row, and the figures of any set of rows."""

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
    """Figures by name, the main one first; a table of rows in between makes draws of rows cheap."""

    main: str
    rows: Callable[[Any, Any, Sequence[str]], Floats]
    """Targets, predictions, labels -> (N, S): what each row adds."""
    figures: Callable[[Floats, Sequence[str]], dict[str, float]]
    """(any number of those rows, S), labels -> the figures."""
    drawn: Callable[[Floats, Sequence[str]], Callable[[Ints], float]] | None = None
    """Rows, labels -> the main figure of row numbers, where there is a faster way to it."""

    def score(self, targets: Any, predictions: Any, labels: Sequence[str] = ()) -> dict[str, float]:
        """Every figure of all rows; `next(iter(...))` is the main one."""
        return self.figures(self.rows(targets, predictions, labels), labels)

    def figure(
        self, targets: Any, predictions: Any, labels: Sequence[str] = (), name: str | None = None
    ) -> Callable[[Ints], float]:
        """One figure (the main one) as a function of row numbers, as `bootstrap` takes it.

        nan where the figure does not exist for the rows drawn.
        """
        table = self.rows(targets, predictions, labels)
        wanted = name or self.main
        known = self.figures(table, labels)
        if wanted not in known:
            raise unknown("figure", wanted, known)
        return lambda rows: self.figures(table[rows], labels).get(wanted, math.nan)


def better(name: str, new: float, old: float) -> bool:
    """Whether a new value of this figure beats the old one; nan beats nothing and loses to all."""
    if math.isnan(new):
        return False
    if math.isnan(old):
        return True
    return new < old if name in LOWER_IS_BETTER else new > old
