"""Calibration: bins of confidence against accuracy, Brier score, negative log likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.metrics.arrays import Floats
from bertsmith.metrics.calibration import brier, negative_log_likelihood, reliability
from bertsmith.tasks.task import Outcomes, ScoredRows


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
