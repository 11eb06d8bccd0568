"""Evaluation of tags: rows that are right, worst errors, classes, calibration, kinds of error."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertsmith.labeled.example import Example, Tagged
from bertsmith.metrics.arrays import Bools, Floats
from bertsmith.metrics.entities import entity_counts, entity_errors, entity_figures, split_tag
from bertsmith.tasks.excerpts import shortened
from bertsmith.tasks.prediction import PredictedSpan, Prediction
from bertsmith.tasks.tag.scheme import is_bio, tag_spans
from bertsmith.tasks.task import ClassPairs, Outcomes, ScoredRows, Task

NOTHING = "(nothing)"
MOST_SPANS = 12


def right(rows: ScoredRows) -> Bools:
    """(N,) whether all tags of a text are right."""
    pairs = zip(rows.truth, rows.predicted, strict=True)
    return np.array([list(wanted) == list(given) for wanted, given in pairs])


def error_weight(rows: ScoredRows) -> Floats:
    """(N,) how many entities differ; among equally many, the more confident row is worse."""
    pairs = zip(rows.examples, rows.predictions, strict=True)
    differ = [len(set(gold_spans(e, rows.labels)) ^ set(_spans(p))) for e, p in pairs]
    return np.where(~right(rows), np.maximum(differ, 1) + np.nan_to_num(rows.confidence), 0.0)


def row_score(truth: Any, predicted: Any) -> Floats:
    """(N,) right tags per text."""
    pairs = zip(truth, predicted, strict=True)
    return np.array([sum(map(operator.eq, tags, given)) for tags, given in pairs], dtype=float)


def gold_spans(example: Example, labels: Sequence[str]) -> tuple[PredictedSpan, ...]:
    """The entities of a labeled example."""
    target = example.target
    if not isinstance(target, Tagged):
        return ()
    return tag_spans(example.texts[0], target.units, target.tags, bio=is_bio(labels))


def sides(example: Example, prediction: Prediction, task: Task) -> tuple[str, str]:
    """The entities that only one side has."""
    wanted, given = gold_spans(example, task.labels), _spans(prediction)
    return _only(wanted, given), _only(given, wanted)


def class_pairs(rows: ScoredRows, by_type: bool) -> ClassPairs | None:
    """Tags of units; `by_type`, entity types."""
    bio = by_type and is_bio(rows.labels)
    flat = [
        [_type(tag) if bio else tag for tags in side for tag in tags]
        for side in (rows.truth, rows.predicted)
    ]
    if not flat[0]:
        return None
    names = sorted({*flat[0], *flat[1]})
    place = {name: number for number, name in enumerate(names)}
    wanted, given = (np.array([place[name] for name in side], dtype=np.int64) for side in flat)
    return names, wanted, given


def class_rows(rows: ScoredRows) -> list[dict[str, Any]] | None:
    """Figures per entity type; None for tags that mark no entities."""
    if not is_bio(rows.labels):
        return None
    counts, types = entity_counts(rows.truth, rows.predicted)
    figures = entity_figures(counts, types)
    given = dict(zip(types, counts[:, 1].sum(axis=0), strict=True))
    return [
        {
            "label": name,
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "support": support,
            "predicted": given[name],
        }
        for name, (precision, recall, f1, support) in figures.by_type.items()
    ]


def outcomes(rows: ScoredRows) -> Outcomes:
    """Units, each with the mean confidence of its text."""
    pairs = list(zip(rows.truth, rows.predicted, strict=True))
    hits = [one == two for wanted, given in pairs for one, two in zip(wanted, given, strict=True)]
    confidence = np.repeat(rows.confidence, [len(wanted) for wanted, _ in pairs])
    return confidence, np.array(hits, dtype=bool), "units"


def sections(rows: ScoredRows) -> dict[str, Any]:
    """The kinds of entity errors."""
    if not is_bio(rows.labels):
        return {}
    return {"entity_errors": entity_errors(rows.truth, rows.predicted)}


def _type(tag: str) -> str:
    letter, name = split_tag(tag)
    return letter if letter == "O" else name


def _only(these: Sequence[PredictedSpan], others: Sequence[PredictedSpan]) -> str:
    """The spans that the other side does not have."""
    known = set(others)
    odd = [span for span in these if span not in known]
    more = f"; and {len(odd) - MOST_SPANS} more" if len(odd) > MOST_SPANS else ""
    shown = (f"{span.label}: {shortened(span.text, 80)}" for span in odd[:MOST_SPANS])
    return "; ".join(shown) + more or NOTHING


def _spans(prediction: Prediction) -> tuple[PredictedSpan, ...]:
    value = prediction.value
    if not isinstance(value, tuple):
        return ()
    return tuple(one for one in value if isinstance(one, PredictedSpan))
