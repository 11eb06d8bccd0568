"""Proof: everything that is measured on labeled rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.evaluation.proof.calibration import calibration
from bertsmith.evaluation.proof.classes import classes, confusion
from bertsmith.evaluation.proof.worst_errors import errors
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Example
from bertsmith.metrics.arrays import Bools, Ints
from bertsmith.metrics.significance import Figure, Interval, bootstrap
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import ScoredRows, Task

DRAWS = 1_000
FEWEST_DRAWS = 100
ROWS_DRAWN = 5_000_000  # in all draws; with more rows there are fewer draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The metrics of labeled rows, the main one first, and their details.

    `interval` is the 95 % bootstrap interval of the main metric. `sections` has what fits the task:
    classes, confusion, calibration, errors, truncation, and those of its descriptor.
    """

    task: str
    rows: int
    unlabeled: int
    right: int | None
    figures: dict[str, float]
    interval: Interval
    sections: dict[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> str:
        """The name of the main metric."""
        return next(iter(self.figures))

    def to_json(self) -> dict[str, Any]:
        """JSON values; nan is null."""
        record = {
            "task": self.task,
            "rows": self.rows,
            "unlabeled": self.unlabeled,
            "right": self.right,
            "main": self.main,
            "figures": self.figures,
            "interval": {"low": self.interval.low, "high": self.interval.high},
            **{name: part for name, part in self.sections.items() if part is not None},
        }
        return dict(json_values(record))


def prove(task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Proof:
    """Score predictions on labeled examples; rows without a label are only counted."""
    if len(examples) != len(predictions):
        raise ConfigError(
            f"{len(examples)} examples, but {len(predictions)} predictions; prove takes one "
            "prediction per example"
        )
    rows = _rows(task, examples, predictions)
    right = task.kind.right(rows)
    own = {} if task.kind.sections is None else task.kind.sections(rows)
    return Proof(
        task=task.name,
        rows=len(rows),
        unlabeled=len(examples) - len(rows),
        right=None if right is None else int(right.sum()),
        figures=rows.figures(),
        interval=_main_interval(rows),
        sections={
            "classes": classes(rows),
            "confusion": confusion(rows),
            "calibration": calibration(rows),
            **own,
            "errors": errors(rows),
            "truncation": _truncation(rows),
        },
    )


def _rows(task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]) -> ScoredRows:
    labeled = [number for number, example in enumerate(examples) if example.target is not None]
    if not labeled:
        raise ConfigError(f"none of the {len(examples)} rows has a label; give labeled rows")
    return ScoredRows.of(task, [examples[n] for n in labeled], [predictions[n] for n in labeled])


def _main_interval(rows: ScoredRows) -> Interval:
    """The 95 % bootstrap interval of the main metric."""
    draws = max(FEWEST_DRAWS, min(DRAWS, ROWS_DRAWN // len(rows)))
    return bootstrap(_main_figure(rows), len(rows), samples=draws)


def _main_figure(rows: ScoredRows) -> Figure:
    """The main metric of drawn rows; sums over rows need no counts per class."""
    kind = rows.task.kind
    metric, right = kind.metric, kind.right(rows)
    if metric.drawn is not None:
        return metric.drawn(rows.table, rows.labels)
    if metric.main == "accuracy" and right is not None:
        return lambda drawn: float(right[drawn].mean())

    def figure(drawn: Ints) -> float:
        return metric.figures(rows.table[drawn], rows.labels)[metric.main]

    return figure


def _truncation(rows: ScoredRows) -> dict[str, Any]:
    """Truncated rows and tokens, and the figures of truncated and whole rows."""
    cut = np.array([one.cut for one in rows.predictions], dtype=np.int64)
    lost: Bools = cut > 0
    return {
        "rows_cut": int(lost.sum()),
        "share": float(lost.mean()),
        "tokens_cut": int(cut.sum()),
        "most_tokens_cut": int(cut.max(initial=0)),
        "cut": rows.figures(lost) if lost.any() else None,
        "whole": rows.figures(~lost) if not lost.all() else None,
    }
