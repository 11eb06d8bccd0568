"""All that labeled rows say of a model, as one thing that becomes JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bertsmith.errors import ConfigError
from bertsmith.evaluation.proof.calibration import calibration
from bertsmith.evaluation.proof.classes import classes, confusion
from bertsmith.evaluation.proof.figures import main_interval, truncation
from bertsmith.evaluation.proof.worst_errors import errors
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Example
from bertsmith.metrics.significance import Interval
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import ScoredRows, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The figures of labeled rows, the main one first, and what stands behind them.

    `interval` is the 95 % bootstrap interval of the main figure. `sections` has what fits the task:
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
        """The name of the main figure."""
        return next(iter(self.figures))

    def to_json(self) -> dict[str, Any]:
        """Plain values; a figure that does not exist is null."""
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
        interval=main_interval(rows),
        sections={
            "classes": classes(rows),
            "confusion": confusion(rows),
            "calibration": calibration(rows),
            **own,
            "errors": errors(rows),
            "truncation": truncation(rows),
        },
    )


def _rows(task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]) -> ScoredRows:
    labeled = [number for number, example in enumerate(examples) if example.target is not None]
    if not labeled:
        raise ConfigError(
            f"none of the {len(examples)} rows has a label; give labeled rows to prove a model by"
        )
    return ScoredRows.of(task, [examples[n] for n in labeled], [predictions[n] for n in labeled])
