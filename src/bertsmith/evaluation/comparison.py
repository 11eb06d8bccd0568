"""Compares two models on the same rows: difference, confidence interval, significance."""

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

SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A metric of two models, the second's minus the first's, and the rows where they differ.

    `rows_p` is the p-value of the sign test over rows that one model predicts better than the
    other; where a prediction is right or wrong, that is McNemar's test.
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
        """0 or 1 if the difference is significant, else None."""
        if not self.difference.p < SIGNIFICANT or self.difference.value == 0:
            return None
        return int((self.difference.value > 0) != (self.figure in LOWER_IS_BETTER))

    def words(self, first: str = "A", second: str = "B") -> list[str]:
        """The result in sentences."""
        delta = self.difference
        test = "McNemar's test" if self.binary else "sign test"
        verb = "right" if self.binary else "better"
        verdict = f"the difference between {first} and {second} is not significant"
        if self.winner is not None:
            verdict = f"{(first, second)[self.winner]} is significantly better"
        return [
            f"{self.figure} on {self.rows:,} rows: {first} {self.first:.4f}, "
            f"{second} {self.second:.4f}",
            f"difference {delta.value:+.4f}, 95 % confidence interval {delta.low:+.4f} to "
            f"{delta.high:+.4f} (paired bootstrap, p {_p_value(delta.p)})",
            f"{first} alone is {verb} on {self.only_first:,} rows, {second} alone on "
            f"{self.only_second:,} ({test}, p {_p_value(self.rows_p)})",
            f"{verdict} at the {100 * SIGNIFICANT:.0f} % level",
        ]

    def to_json(self) -> dict[str, Any]:
        """JSON values; nan is null."""
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
    """Compare two models' predictions by the task's main metric or another one."""
    if not len(examples) == len(first) == len(second):
        raise ConfigError(
            f"{len(examples)} rows, {len(first)} and {len(second)} predictions: compare takes one "
            "prediction of each model per row"
        )
    metric = task.kind.metric
    truth, predicted = task.truth(examples), [task.predicted(first), task.predicted(second)]
    name = figure or metric.main
    sides = [metric.figure(truth, one, task.labels, name) for one in predicted]
    difference = paired_bootstrap(sides[0], sides[1], len(examples), samples=samples, seed=seed)
    everything = np.arange(len(examples))
    scores = [row_scores(task, truth, one) for one in predicted]
    ahead, behind = scores[0] > scores[1], scores[1] > scores[0]
    return Comparison(
        figure=name,
        rows=len(examples),
        first=sides[0](everything),
        second=sides[1](everything),
        difference=difference,
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


def _p_value(p: float) -> str:
    return f"{p:.4f}" if not p < 0.0001 else "below 0.0001"
