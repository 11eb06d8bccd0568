"""All that labeled rows say of a model, as one thing that becomes JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bertsmith.errors import ConfigError
from bertsmith.evaluation.proof.calibration import calibration
from bertsmith.evaluation.proof.classes import classes, confusion
from bertsmith.evaluation.proof.entity_errors import entity_errors
from bertsmith.evaluation.proof.figures import main_interval, numbers, truncation
from bertsmith.evaluation.proof.questions import questions, silence
from bertsmith.evaluation.proof.rows import Rows, right_rows
from bertsmith.evaluation.proof.worst_errors import errors
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Example
from bertsmith.metrics import METRICS
from bertsmith.metrics.significance import Interval
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The figures of labeled rows, the main one first, and what stands behind them.

    `interval` is that of the main figure over draws of the rows (95 %). `sections` has what fits
    the task: classes, confusion, calibration, errors, truncation, numbers, entity_errors,
    questions, silence.
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
        told = {
            "task": self.task,
            "rows": self.rows,
            "unlabeled": self.unlabeled,
            "right": self.right,
            "main": self.main,
            "figures": self.figures,
            "interval": {"low": self.interval.low, "high": self.interval.high},
            **{name: part for name, part in self.sections.items() if part is not None},
        }
        return dict(json_values(told))


def prove(task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Proof:
    """What labeled examples say of these predictions; rows without a label are only counted."""
    if len(examples) != len(predictions):
        raise ConfigError(
            f"{len(examples)} examples stand against {len(predictions)} predictions; "
            "prove takes one prediction an example"
        )
    rows = _rows(task, examples, predictions)
    figures = METRICS[task.name].figures(rows.table, rows.labels)
    right = right_rows(rows)
    thresholds = task.thresholds if isinstance(task, Multilabel) else ()
    return Proof(
        task=task.name,
        rows=len(rows),
        unlabeled=len(examples) - len(rows),
        right=None if right is None else int(right.sum()),
        figures=figures,
        interval=main_interval(rows),
        sections={
            "classes": classes(rows, thresholds),
            "confusion": confusion(rows),
            "calibration": calibration(rows),
            "numbers": numbers(rows),
            "entity_errors": entity_errors(rows),
            "questions": questions(rows),
            "silence": silence(rows),
            "errors": errors(rows),
            "truncation": truncation(rows),
        },
    )


def _rows(task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Rows:
    labeled = [
        (example, said)
        for example, said in zip(examples, predictions, strict=True)
        if example.target is not None
    ]
    if not labeled:
        raise ConfigError(
            f"none of the {len(examples)} rows has a label; give labeled rows to prove a model by"
        )
    kept, given = [example for example, _ in labeled], [said for _, said in labeled]
    truth, said = task.compared(kept, given)
    return Rows(
        task=task.name,
        labels=task.labels,
        examples=kept,
        predictions=given,
        truth=truth,
        said=said,
        table=METRICS[task.name].rows(truth, said, task.labels),
    )
