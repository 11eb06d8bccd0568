"""Two models on the same rows: which one is better, and whether chance alone would say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Example
from bertsmith.metrics import LOWER_IS_BETTER
from bertsmith.metrics.significance import Difference, mcnemar, paired_bootstrap
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Task

CHANCE = 0.05  # below it, a difference is taken for real


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A figure of two models, the second's less the first's, and the rows that tell them apart.

    `rows_p` is the sign test over rows that one model answers better than the other; where an
    answer is right or wrong, that is McNemar's test.
    """

    figure: str
    rows: int
    first: float
    second: float
    difference: Difference
    only_first: int
    only_second: int
    rows_p: float
    binary: bool

    @property
    def winner(self) -> int | None:
        """0 or 1 if chance alone would hardly make such a difference, else None."""
        found = self.difference
        if not found.p < CHANCE or found.value == 0:
            return None
        return int((found.value > 0) != (self.figure in LOWER_IS_BETTER))

    def words(self, first: str = "A", second: str = "B") -> list[str]:
        """The verdict in plain sentences."""
        found = self.difference
        kind = "McNemar's test" if self.binary else "sign test"
        verb = "right" if self.binary else "better"
        lines = [
            f"{self.figure} on {self.rows:,} rows: {first} {self.first:.4f}, "
            f"{second} {self.second:.4f}",
            f"difference {found.value:+.4f}, 95 % of draws of these rows {found.low:+.4f} to "
            f"{found.high:+.4f} (paired bootstrap, p {_chance(found.p)})",
            f"{first} alone is {verb} on {self.only_first:,} rows, {second} alone on "
            f"{self.only_second:,} ({kind}, p {_chance(self.rows_p)})",
        ]
        if self.winner is None:
            lines.append(
                f"these rows do not tell {first} and {second} apart: chance alone makes a "
                f"difference like this in {_share(found.p)} of draws"
            )
        else:
            name = (first, second)[self.winner]
            lines.append(
                f"{name} is better on rows like these: chance alone makes a difference like this "
                f"in {_share(found.p)} of draws"
            )
        return lines

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is no number is null."""
        return dict(json_values(asdict(self) | {"winner": self.winner}))


def compare(
    task: Task,
    examples: Sequence[Example],
    first: Sequence[Prediction],
    second: Sequence[Prediction],
    *,
    figure: str | None = None,
    samples: int = 1_000,
    seed: int = 0,
) -> Comparison:
    """Two models' answers to labeled rows, by the task's main figure or another one."""
    if not len(examples) == len(first) == len(second):
        raise ConfigError(
            f"{len(examples)} rows, {len(first)} and {len(second)} answers: compare takes an "
            "answer of each model for each row"
        )
    metric = task.kind.metric
    truth, one = task.compared(examples, first)
    _, two = task.compared(examples, second)
    name = figure or metric.main
    sides = [metric.figure(truth, said, task.labels, name) for said in (one, two)]
    found = paired_bootstrap(sides[0], sides[1], len(examples), samples=samples, seed=seed)
    everything = np.arange(len(examples))
    good = [row_scores(task, truth, said) for said in (one, two)]
    ahead, behind = good[0] > good[1], good[1] > good[0]
    return Comparison(
        figure=name,
        rows=len(examples),
        first=sides[0](everything),
        second=sides[1](everything),
        difference=found,
        only_first=int(ahead.sum()),
        only_second=int(behind.sum()),
        rows_p=mcnemar(ahead, behind),
        binary=task.kind.row_score is None,
    )


def row_scores(task: Task, truth: Any, predicted: Any) -> NDArray[np.float64]:
    """(N,): the score of each row, more being better; comparable within a task only."""
    if task.kind.row_score is not None:
        return task.kind.row_score(truth, predicted)
    return np.asarray(np.asarray(truth) == np.asarray(predicted), dtype=np.float64)


def _share(p: float) -> str:
    return f"{100 * p:.1f} %" if p >= 0.0005 else "less than 0.1 %"


def _chance(p: float) -> str:
    return f"{p:.4f}" if not p < 0.0001 else "below 0.0001"
