"""The worst errors, with the text and where it stands."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.evaluation.proof.presentation import LONGEST, around, shortened
from bertsmith.evaluation.proof.rows import Rows, both_sides, right_rows, weight_of_errors
from bertsmith.labeled.example import Answers, Example, Label
from bertsmith.tasks.prediction import Answer, Prediction

MOST = 50
FIELDS = 8  # shown of one row


def errors(rows: Rows) -> dict[str, Any]:
    """How many rows are wrong, and the worst of them; of numbers, the farthest."""
    weights = weight_of_errors(rows)
    right = right_rows(rows)
    wrong = weights > 0 if right is None else ~right
    order = [n for n in np.argsort(-weights, kind="stable").tolist() if wrong[n]][:MOST]
    return {
        "wrong": None if right is None else int(wrong.sum()),
        "shown": [_told(rows, n, float(weights[n])) for n in order],
    }


def _told(rows: Rows, number: int, weight: float) -> dict[str, Any]:
    example, said = rows.examples[number], rows.predictions[number]
    truth, answer = both_sides(example, said, rows.labels)
    told: dict[str, Any] = {
        "place": f"{example.source}:{example.line}",
        "id": example.id,
        "texts": _texts(example, said),
        "truth": truth,
        "answer": answer,
        # Of several labels there is a confidence for each; the weight is that of the worst.
        "confidence": weight if rows.task == "multilabel" else said.confidence,
        "tokens_cut": said.cut,
    }
    if isinstance(example.target, Label):
        told["truth_confidence"] = said.probabilities.get(example.target.name)
    return told


def _texts(example: Example, said: Prediction) -> list[str]:
    """The fields, long ones cut; of a context, the part around its answers."""
    target, value = example.target, said.value
    if isinstance(target, Answers) and isinstance(value, Answer):
        places = [(start, start + len(text)) for text, start in target.found[:1]]
        if value.text:
            places.append((value.start, value.end))
        return [shortened(example.texts[0]), around(example.texts[1], places)]
    room = max(80, LONGEST * 2 // max(2, len(example.texts)))
    return [shortened(text, room) for text in example.texts[:FIELDS]]
