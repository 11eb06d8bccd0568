"""Whether confidence can be believed: in bins, and as one error."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.evaluation.proof.rows import Rows, right_rows
from bertsmith.metrics.arrays import Bools, Floats
from bertsmith.metrics.calibration import brier, negative_log_likelihood, reliability

BINS = 15


def calibration(rows: Rows) -> dict[str, Any] | None:
    """Bins of confidence against the share that was right, their error, Brier score and surprise.

    What is counted: rows; of several labels, every single label of every row; of tags, every unit
    with the mean confidence of its text. None where there is no confidence.
    """
    if rows.task == "regress":
        return None
    sure, right, counted = _pairs(rows)
    known = np.isfinite(sure)
    if not known.any():
        return None
    found = reliability(_as_scores(sure[known]), (~right[known]).astype(np.int64), bins=BINS)
    columns = (found.low, found.high, found.confidence, found.accuracy, found.count)
    names = ("low", "high", "confidence", "right", "count")
    told: dict[str, Any] = {
        "ece": found.error,
        "counted": counted,
        "confidence": float(sure[known].mean()),
        "right": float(right[known].mean()),
        "bins": [dict(zip(names, one, strict=True)) for one in zip(*columns, strict=True)],
    }
    if rows.task in ("classify", "choose"):
        chances = _table(rows)
        told["brier"] = brier(chances, rows.truth)
        told["nll"] = negative_log_likelihood(chances, rows.truth)
    return told


def _pairs(rows: Rows) -> tuple[Floats, Bools, str]:
    """(M,) confidences, (M,) whether that was right, and what M counts."""
    if rows.task == "multilabel":
        return rows.said.probabilities.reshape(-1), rows.truth.reshape(-1), "labels of rows"
    if rows.task == "tag":
        pairs = list(zip(rows.truth, rows.said, strict=True))
        right = [
            one == two for wanted, given in pairs for one, two in zip(wanted, given, strict=True)
        ]
        sure = np.repeat(rows.confidence, [len(wanted) for wanted, _ in pairs])
        return sure, np.array(right, dtype=bool), "units"
    exact = right_rows(rows)
    return rows.confidence, np.zeros(len(rows), bool) if exact is None else exact, "rows"


def _as_scores(sure: Floats) -> Floats:
    """(M, 2): the answer given, and one for "anything else" that can never be the highest."""
    return np.column_stack([sure, np.full(len(sure), -1.0)])


def _table(rows: Rows) -> Floats:
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
