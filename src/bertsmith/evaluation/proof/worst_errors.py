"""The worst errors, with the text and where it is in the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.labeled.example import Answers, Example, Label
from bertsmith.tasks.excerpts import LONGEST, around, shortened
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.task import ScoredRows

MOST = 50
FIELDS = 8  # shown of one row


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
