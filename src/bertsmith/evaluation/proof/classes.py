"""Per-class figures and the confusion matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.metrics.arrays import Ints
from bertsmith.metrics.classification import confusion as confusion_matrix
from bertsmith.metrics.classification import per_class
from bertsmith.tasks.task import ClassPairs, ScoredRows

MOST_LABELS = 30
OTHERS = "(others)"


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
