"""The proof of a fine-tuned model: everything that is measured on labeled rows, as one record.

Metrics with intervals and baselines, figures per class, calibration, truncation, worst errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.files.strict_json import json_values
from bertsmith.labeled.example import Answers, Example, Label, Tagged
from bertsmith.metrics.arrays import Bools, Floats, Ints
from bertsmith.metrics.calibration import brier, negative_log_likelihood, reliability
from bertsmith.metrics.classification import confusion as confusion_matrix
from bertsmith.metrics.classification import per_class
from bertsmith.metrics.significance import Figure, Interval, bootstrap
from bertsmith.tasks.excerpts import LONGEST, around, shortened
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.task import ClassPairs, Outcomes, ScoredRows, Task, TaskOptions

DRAWS = 1_000
FEWEST_DRAWS = 100
ROWS_DRAWN = 5_000_000  # in all draws; with more rows there are fewer draws
MOST_LABELS = 30
OTHERS = "(others)"
MOST = 50
FIELDS = 8  # shown of one row


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


def baselines(
    task: str, train: Sequence[Example], examples: Sequence[Example]
) -> dict[str, dict[str, float]]:
    """Metrics of `majority` and `words`, fitted on training rows; unlabeled rows are skipped.

    An undefined metric (a constant has no correlation) is left out.
    """
    kind = task_kind(task)
    known = [example for example in train if example.target is not None]
    scored = [example for example in examples if example.target is not None]
    if not known or not scored:
        what = "training rows" if not known else "rows to score"
        raise ConfigError(f"there are no labeled {what}; a baseline needs both")
    if kind.majority is None and kind.words is None:
        return {}
    both = kind.from_data([*known, *scored], TaskOptions())
    targets, truth, labels = both.truth(known), both.truth(scored), both.labels
    texts, new = [[_fields(example) for example in rows] for rows in (known, scored)]
    result = {}
    for name, baseline in (("majority", kind.majority), ("words", kind.words)):
        if baseline is not None:
            figures = kind.metric.score(truth, baseline(texts, targets, new, labels), labels)
            result[name] = {key: value for key, value in figures.items() if math.isfinite(value)}
    return result


def _fields(example: Example) -> Sequence[str]:
    """The texts of a row, or the units of a tagged text."""
    if isinstance(example.target, Tagged):
        return [example.texts[0][start:end] for start, end in example.target.units]
    return example.texts


def classes(rows: ScoredRows) -> list[dict[str, Any]] | None:
    """Precision, recall, F1, support and number of predictions per class."""
    kind = rows.task.kind
    own = None if kind.class_rows is None else kind.class_rows(rows)
    pairs = _pairs(rows, by_type=False) if own is None else None
    if pairs is None:
        return own
    names, wanted, given = pairs
    matrix = confusion_matrix(wanted, given, len(names))
    figures = per_class(matrix)
    return [
        {
            "label": name,
            "precision": figures.precision[n],
            "recall": figures.recall[n],
            "f1": figures.f1[n],
            "support": figures.support[n],
            "predicted": matrix[:, n].sum(),
        }
        for n, name in enumerate(names)
    ]


def confusion(rows: ScoredRows) -> dict[str, Any] | None:
    """The confusion matrix of the most frequent labels, the rest joined into one."""
    pairs = _pairs(rows, by_type=True)
    if pairs is None:
        return None
    names, wanted, given = pairs
    matrix = confusion_matrix(wanted, given, len(names))
    seen = matrix.sum(axis=0) + matrix.sum(axis=1)
    if len(names) > MOST_LABELS:
        frequent = np.sort(np.argsort(-seen, kind="stable")[: MOST_LABELS - 1])
        return _folded(matrix, names, frequent)
    return {"labels": names, "counts": matrix, "joined": 0}


def _pairs(rows: ScoredRows, *, by_type: bool) -> ClassPairs | None:
    class_pairs = rows.task.kind.class_pairs
    return None if class_pairs is None else class_pairs(rows, by_type)


def _folded(matrix: Ints, names: list[str], chosen: Ints) -> dict[str, Any]:
    """The matrix with all but some labels joined into one more, the last.

    Its diagonal counts right rows only; rare labels confused with each other are `mixed`.
    """
    rest = np.setdiff1d(np.arange(len(names)), chosen)
    size = len(chosen)
    small = np.zeros((size + 1, size + 1), dtype=np.int64)
    small[:size, :size] = matrix[np.ix_(chosen, chosen)]
    small[:size, size] = matrix[np.ix_(chosen, rest)].sum(axis=1)
    small[size, :size] = matrix[np.ix_(rest, chosen)].sum(axis=0)
    inside = matrix[np.ix_(rest, rest)]
    small[size, size] = np.trace(inside)
    return {
        "labels": [*(names[n] for n in chosen), OTHERS],
        "counts": small,
        "joined": len(rest),
        "mixed": int(inside.sum() - np.trace(inside)),
    }


def calibration(rows: ScoredRows) -> dict[str, Any] | None:
    """Bins of confidence against the share that was right, their error, Brier score and NLL.

    What is counted depends on the task: rows; every label of every row; every unit with the mean
    confidence of its text. None where there is no confidence.
    """
    pairs = _outcomes(rows)
    if pairs is None:
        return None
    confidence, right, counted = pairs
    known = np.isfinite(confidence)
    if not known.any():
        return None
    bins = reliability(confidence[known], right[known])
    columns = (bins.low, bins.high, bins.confidence, bins.accuracy, bins.count)
    names = ("low", "high", "confidence", "right", "count")
    record: dict[str, Any] = {
        "ece": bins.error,
        "counted": counted,
        "confidence": float(confidence[known].mean()),
        "right": float(right[known].mean()),
        "bins": [dict(zip(names, one, strict=True)) for one in zip(*columns, strict=True)],
    }
    if rows.task.kind.scores_classes:
        chances = _table(rows)
        record["brier"] = brier(chances, rows.truth)
        record["nll"] = negative_log_likelihood(chances, rows.truth)
    return record


def _outcomes(rows: ScoredRows) -> Outcomes | None:
    kind = rows.task.kind
    if kind.outcomes is not None:
        return kind.outcomes(rows)
    right = kind.right(rows)
    return None if right is None else (rows.confidence, right, "rows")


def _table(rows: ScoredRows) -> Floats:
    """(N, C) probabilities; choices that a row does not have are impossible."""
    widest = max(len(one.probabilities) for one in rows.predictions)
    chances = np.zeros((len(rows), widest))
    for number, one in enumerate(rows.predictions):
        values = (
            [one.probabilities[label] for label in rows.labels]
            if rows.labels
            else list(one.probabilities.values())
        )
        chances[number, : len(values)] = values
    return chances


def errors(rows: ScoredRows) -> dict[str, Any]:
    """How many rows are wrong, and the worst of them; of numbers, those with the largest error."""
    weights = rows.task.kind.error_weight(rows)
    right = rows.task.kind.right(rows)
    wrong = weights > 0 if right is None else ~right
    order = [n for n in np.argsort(-weights, kind="stable").tolist() if wrong[n]][:MOST]
    return {
        "wrong": None if right is None else int(wrong.sum()),
        "shown": [_record(rows, n, float(weights[n])) for n in order],
    }


def _record(rows: ScoredRows, number: int, weight: float) -> dict[str, Any]:
    example, prediction, kind = rows.examples[number], rows.predictions[number], rows.task.kind
    truth, predicted = kind.sides(example, prediction, rows.task)
    record: dict[str, Any] = {
        "place": f"{example.source}:{example.line}",
        "id": example.id,
        "texts": _texts(example, prediction),
        "truth": truth,
        "prediction": predicted,
        "confidence": weight if kind.weight_is_confidence else prediction.confidence,
        "tokens_cut": prediction.cut,
    }
    if isinstance(example.target, Label):
        record["truth_confidence"] = prediction.probabilities.get(example.target.name)
    return record


def _texts(example: Example, prediction: Prediction) -> list[str]:
    """The fields, long ones cut; of a context, the part around its answers."""
    target, value = example.target, prediction.value
    if isinstance(target, Answers) and isinstance(value, PredictedAnswer):
        places = [(start, start + len(text)) for text, start in target.placed[:1]]
        if value.text:
            places.append((value.start, value.end))
        return [shortened(example.texts[0]), around(example.texts[1], places)]
    room = max(80, LONGEST * 2 // max(2, len(example.texts)))
    return [shortened(text, room) for text in example.texts[:FIELDS]]
