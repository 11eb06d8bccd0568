"""Row by row: what was right, how sure a wrong answer was, and both sides in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertsmith.evaluation.proof.presentation import shortened
from bertsmith.labeled.example import Answers, Choice, Example, Label, Labels, Score, Tagged
from bertsmith.metrics.arrays import Bools, Floats
from bertsmith.metrics.multilabel import Decisions
from bertsmith.tasks.prediction import Answer, Prediction, Span
from bertsmith.tasks.tag.scheme import is_bio, tag_spans

NOTHING = "(nothing)"
NO_ANSWER = "(no answer)"
MOST_SPANS = 12
GOLDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Labeled examples with what was said of them; `table` is what each adds to the metric."""

    task: str
    labels: tuple[str, ...]
    examples: Sequence[Example]
    predictions: Sequence[Prediction]
    truth: Any
    said: Any
    table: Floats  # (N, S)

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def confidence(self) -> Floats:
        """(N,), nan where a task gives none."""
        return np.array(
            [np.nan if one.confidence is None else one.confidence for one in self.predictions]
        )


def right_rows(rows: Rows) -> Bools | None:
    """(N,) whether each row was answered exactly; None where answers are never exact."""
    if rows.task == "regress":
        return None
    if rows.task == "multilabel":
        return np.asarray((rows.truth == _decisions(rows).chosen).all(axis=1))
    if rows.task == "tag":
        pairs = zip(rows.truth, rows.said, strict=True)
        return np.array([list(wanted) == list(given) for wanted, given in pairs])
    if rows.task == "answer":
        exact: Bools = rows.table[:, 1] == 1.0
        return exact
    return np.asarray(rows.truth == rows.said)


def weight_of_errors(rows: Rows) -> Floats:
    """(N,) how bad each row is, the worst the highest; 0 and less: it was right.

    One label, choices: how sure the wrong answer was. Several labels: how sure the worst wrong
    decision. Numbers: how far away. Tags: how many entities differ, and of equally many the surer
    row. Answers: how sure, times the share of F1 that is missing.
    """
    if rows.task == "regress":
        away: Floats = np.abs(rows.said - rows.truth)
        return away
    if rows.task == "multilabel":
        given = _decisions(rows)
        sure = np.where(given.chosen, given.probabilities, 1 - given.probabilities)
        worst: Floats = np.where(given.chosen != rows.truth, sure, 0.0).max(axis=1, initial=0.0)
        return worst
    right = right_rows(rows)
    wrong = np.zeros(len(rows), dtype=bool) if right is None else ~right
    sure = np.nan_to_num(rows.confidence)
    if rows.task == "tag":
        pairs = zip(rows.examples, rows.predictions, strict=True)
        differ = [len(set(spans_of(e, rows.labels)) ^ set(_spans(p))) for e, p in pairs]
        return np.where(wrong, np.maximum(differ, 1) + sure, 0.0)
    if rows.task == "answer":
        return np.where(wrong, (1 - rows.table[:, 0]) * np.maximum(sure, 1e-9), 0.0)
    return np.where(wrong, np.maximum(sure, 1e-9), 0.0)


def spans_of(example: Example, labels: Sequence[str]) -> tuple[Span, ...]:
    """The entities that an example should have."""
    target = example.target
    if not isinstance(target, Tagged):
        return ()
    return tag_spans(example.texts[0], target.units, target.tags, bio=is_bio(labels))


def both_sides(example: Example, prediction: Prediction, labels: Sequence[str]) -> tuple[str, str]:
    """Truth and answer as a person would say them."""
    target, value = example.target, prediction.value
    if isinstance(target, Tagged):
        wanted, given = spans_of(example, labels), _spans(prediction)
        return _only(wanted, given), _only(given, wanted)
    return _wanted(example), _given(example, value)


def _wanted(example: Example) -> str:
    target = example.target
    if isinstance(target, Label):
        return target.name
    if isinstance(target, Labels):
        return ", ".join(target.names) or NOTHING
    if isinstance(target, Score):
        return f"{target.value:.4g}"
    if isinstance(target, Choice):
        return _choice(example, target.index)
    if isinstance(target, Answers):
        golds = dict.fromkeys([*(text for text, _ in target.found), *target.unplaced])
        return " / ".join(shortened(gold, 120) for gold in list(golds)[:GOLDS]) or NO_ANSWER
    return NOTHING


def _given(example: Example, value: object) -> str:
    if isinstance(value, Answer):
        return shortened(value.text, 120) or NO_ANSWER
    if isinstance(value, tuple):
        return ", ".join(str(name) for name in value) or NOTHING
    if isinstance(example.target, Choice) and isinstance(value, int):
        return _choice(example, value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _choice(example: Example, index: int) -> str:
    return f"{index + 1}: {shortened(example.texts[index + 1], 120)}"


def _only(these: Sequence[Span], others: Sequence[Span]) -> str:
    """The spans that the other side does not have."""
    known = set(others)
    odd = [span for span in these if span not in known]
    more = f"; and {len(odd) - MOST_SPANS} more" if len(odd) > MOST_SPANS else ""
    said = (f"{span.label}: {shortened(span.text, 80)}" for span in odd[:MOST_SPANS])
    return "; ".join(said) + more or NOTHING


def _spans(prediction: Prediction) -> tuple[Span, ...]:
    value = prediction.value
    return tuple(v for v in value if isinstance(v, Span)) if isinstance(value, tuple) else ()


def _decisions(rows: Rows) -> Decisions:
    if not isinstance(rows.said, Decisions):
        raise TypeError(f"not decisions over labels: {type(rows.said)}")
    return rows.said


Section = Callable[[Rows], Any]
"""A part of the proof; None where the rows have nothing to say about it."""
