"""Metrics of tags and answers: the part of each row, and the figures of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.metrics.answers import answer_scores, rules_for
from bertsmith.metrics.arrays import Floats, check_rows
from bertsmith.metrics.entities import Span, entity_counts, entity_figures, spans, split_tag
from bertsmith.metrics.metric import Metric

Tags = Sequence[Sequence[str]]


def tag_rows(targets: Tags, predictions: Tags, labels: Sequence[str]) -> Floats:
    """Tags of N texts, unit by unit -> (N, 3 types + 2): entity counts, units right, units."""
    known = set(labels).union(*targets, *predictions)
    counts, _ = entity_counts(targets, predictions, spans if _entities(known) else _units)
    right = [
        sum(map(str.__eq__, wanted, given))
        for wanted, given in zip(targets, predictions, strict=True)
    ]
    units = [len(wanted) for wanted in targets]
    return np.column_stack([counts.reshape(len(targets), -1), right, units]).astype(np.float64)


def tag_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    """F1, precision and recall of entities, F1 over types, and the share of right tags."""
    counts = rows[:, :-2].reshape(len(rows), 3, -1)
    found = entity_figures(counts, [str(number) for number in range(counts.shape[2])])
    right, units = rows[:, -2:].sum(axis=0)
    return {
        "f1": found.f1,
        "precision": found.precision,
        "recall": found.recall,
        "f1_macro": found.macro_f1,
        "accuracy": float(right / units) if units else 0.0,
    }


def answer_rows(
    targets: Sequence[Sequence[str]], predictions: Sequence[str | None], labels: Sequence[str]
) -> Floats:
    """Gold answers and answers of N questions -> (N, 3): F1, exact, whether there is an answer."""
    check_rows(targets, predictions)
    scores = answer_scores(targets, predictions, labels[0] if labels else rules_for(targets))
    return np.column_stack([scores[:, 1], scores[:, 0], [bool(golds) for golds in targets]])


def answer_figures(rows: Floats, labels: Sequence[str]) -> dict[str, float]:
    """F1 and exact match; each also for questions with and without an answer if there are both."""
    f1, exact, has = rows[:, 0], rows[:, 1], rows[:, 2] > 0
    figures = {"f1": float(f1.mean()), "exact": float(exact.mean())}
    if has.any() and not has.all():
        for name, part in (("answerable", has), ("unanswerable", ~has)):
            figures[f"f1_{name}"] = float(f1[part].mean())
            figures[f"exact_{name}"] = float(exact[part].mean())
    return figures


def _entities(tags: set[str]) -> bool:
    """Whether all tags belong to a scheme of entities; parts of speech, say, do not."""
    try:
        for tag in tags:
            split_tag(tag)
    except ConfigError:
        return False
    return True


def _units(tags: Sequence[str]) -> list[Span]:
    return [(tag, place, place + 1) for place, tag in enumerate(tags)]


TAGS = Metric("f1", tag_rows, tag_figures)
ANSWERS = Metric("f1", answer_rows, answer_figures)
