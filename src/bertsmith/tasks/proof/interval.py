"""How far the main figure would move with other rows of the same kind."""

from __future__ import annotations

from bertsmith.metrics import METRICS
from bertsmith.metrics.arrays import Ints
from bertsmith.metrics.significance import Figure, Interval, bootstrap
from bertsmith.tasks.proof.rows import Rows, right_rows

DRAWS = 1_000
FEWEST_DRAWS = 100
ROWS_DRAWN = 5_000_000  # in all draws; more rows get fewer draws, as their figure moves less


def main_interval(rows: Rows) -> Interval:
    """The 95 % interval of the main figure, by drawing rows again."""
    draws = max(FEWEST_DRAWS, min(DRAWS, ROWS_DRAWN // len(rows)))
    return bootstrap(_main_figure(rows), len(rows), samples=draws)


def _main_figure(rows: Rows) -> Figure:
    """The main figure of drawn rows; figures that are sums of rows need no table of classes."""
    metric = METRICS[rows.task]
    right = right_rows(rows)
    if metric.main == "accuracy" and right is not None:
        return lambda drawn: float(right[drawn].mean())
    if rows.task == "multilabel":
        both = (rows.truth & rows.said.chosen).sum(axis=1)
        either = rows.truth.sum(axis=1) + rows.said.chosen.sum(axis=1)
        return lambda drawn: float(2 * both[drawn].sum() / max(1, either[drawn].sum()))

    def figure(drawn: Ints) -> float:
        return metric.figures(rows.table[drawn], rows.labels)[metric.main]

    return figure
