"""Metrics of the baselines (majority, linear model on words) on the rows a model is scored on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example, Tagged
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.task import TaskOptions


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
