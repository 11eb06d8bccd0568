"""Figures of each class, and which class is taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.evaluation.proof.rows import Rows
from bertsmith.labeled.example import Choice
from bertsmith.metrics.arrays import Ints, share
from bertsmith.metrics.classification import confusion as count_pairs
from bertsmith.metrics.classification import per_class
from bertsmith.metrics.entities import entity_counts, entity_figures, split_tag
from bertsmith.metrics.multilabel import average_precision, label_counts
from bertsmith.tasks.tag.scheme import is_bio

MOST_LABELS = 30
OTHERS = "(others)"


def classes(rows: Rows, thresholds: tuple[float, ...] = ()) -> list[dict[str, Any]] | None:
    """Precision, recall, F1 and support of each label, each type of entity, each place of a choice.

    `predicted` is how often a class was given. Several labels also have their threshold and
    average precision.
    """
    if rows.task == "multilabel":
        return _labels(rows, thresholds)
    if rows.task == "tag" and is_bio(rows.labels):
        return _entities(rows)
    pairs = _pairs(rows)
    if pairs is None:
        return None
    names, wanted, given = pairs
    matrix = count_pairs(wanted, given, len(names))
    found = per_class(matrix)
    return [
        {
            "label": name,
            "precision": found.precision[n],
            "recall": found.recall[n],
            "f1": found.f1[n],
            "support": found.support[n],
            "predicted": matrix[:, n].sum(),
        }
        for n, name in enumerate(names)
    ]


def confusion(rows: Rows) -> dict[str, Any] | None:
    """How often label i was taken for j: the labels with the most rows, the rest as one.

    Of tagging, every unit counts, by the type of its tag.
    """
    pairs = _pairs(rows, by_type=True)
    if pairs is None:
        return None
    names, wanted, given = pairs
    matrix = count_pairs(wanted, given, len(names))
    seen = matrix.sum(axis=0) + matrix.sum(axis=1)
    if len(names) > MOST_LABELS:
        commonest = np.sort(np.argsort(-seen, kind="stable")[: MOST_LABELS - 1])
        return _folded(matrix, names, commonest)
    return {"labels": names, "counts": matrix, "joined": 0}


def _folded(matrix: Ints, names: list[str], kept: Ints) -> dict[str, Any]:
    """The matrix with all labels but the kept ones as one more, the last.

    Its diagonal counts what was right only; one rare label taken for another is in neither
    label's favor, and is told as `mixed`.
    """
    rest = np.setdiff1d(np.arange(len(names)), kept)
    size = len(kept)
    small = np.zeros((size + 1, size + 1), dtype=np.int64)
    small[:size, :size] = matrix[np.ix_(kept, kept)]
    small[:size, size] = matrix[np.ix_(kept, rest)].sum(axis=1)
    small[size, :size] = matrix[np.ix_(rest, kept)].sum(axis=0)
    inside = matrix[np.ix_(rest, rest)]
    small[size, size] = np.trace(inside)
    return {
        "labels": [*(names[n] for n in kept), OTHERS],
        "counts": small,
        "joined": len(rest),
        "mixed": int(inside.sum() - np.trace(inside)),
    }


def _labels(rows: Rows, thresholds: tuple[float, ...]) -> list[dict[str, Any]]:
    counts = label_counts(rows.truth, rows.said.chosen)
    precision, recall = share(counts.right, counts.given), share(counts.right, counts.wanted)
    average = average_precision(rows.truth, rows.said.probabilities)
    limits = thresholds or (0.5,) * len(rows.labels)
    return [
        {
            "label": name,
            "precision": precision[n],
            "recall": recall[n],
            "f1": counts.f1[n],
            "support": counts.wanted[n],
            "predicted": counts.given[n],
            "average_precision": average[n],
            "threshold": limits[n],
        }
        for n, name in enumerate(rows.labels)
    ]


def _entities(rows: Rows) -> list[dict[str, Any]]:
    counts, kinds = entity_counts(rows.truth, rows.said)
    found = entity_figures(counts, kinds)
    given = dict(zip(kinds, counts[:, 1].sum(axis=0), strict=True))
    return [
        {
            "label": kind,
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "support": support,
            "predicted": given[kind],
        }
        for kind, (precision, recall, f1, support) in found.by_type.items()
    ]


def _pairs(rows: Rows, *, by_type: bool = False) -> tuple[list[str], Ints, Ints] | None:
    """Names, and what was wanted and given as their numbers, (M,) each."""
    if rows.task == "classify":
        return list(rows.labels), rows.truth, rows.said
    if rows.task == "choose":
        most = max(len(example.texts) - 1 for example in rows.examples)
        if not all(isinstance(example.target, Choice) for example in rows.examples):
            return None
        return [f"choice {place + 1}" for place in range(most)], rows.truth, rows.said
    if rows.task != "tag":
        return None
    bio = by_type and is_bio(rows.labels)
    flat = [
        [_kind(tag) if bio else tag for tags in side for tag in tags]
        for side in (rows.truth, rows.said)
    ]
    if not flat[0]:
        return None
    names = sorted({*flat[0], *flat[1]})
    place = {name: number for number, name in enumerate(names)}
    wanted, given = (np.array([place[name] for name in side], dtype=np.int64) for side in flat)
    return names, wanted, given


def _kind(tag: str) -> str:
    letter, kind = split_tag(tag)
    return letter if letter == "O" else kind
