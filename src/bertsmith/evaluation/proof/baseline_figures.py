"""Figures of the baselines (majority, bag of words) on the rows that a model is scored on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
)
from bertsmith.tasks.kinds import task_kind

Sides = tuple[list[Sequence[str]], Any]


def baselines(
    task: str, train: Sequence[Example], examples: Sequence[Example]
) -> dict[str, dict[str, float]]:
    """Figures of `majority` and `words`, fitted on training rows; rows without a label are passed.

    A figure that does not exist (a constant has no correlation) is left out.
    """
    kind = task_kind(task)
    known = [example for example in train if example.target is not None]
    asked = [example for example in examples if example.target is not None]
    if not known or not asked:
        what = "training rows" if not known else "rows to score"
        raise ConfigError(f"there are no labeled {what}; a baseline needs both kinds")
    labels = _labels([*known, *asked])
    texts, targets = _sides(known, labels)
    new, truth = _sides(asked, labels)
    result = {}
    for name, baseline in (("majority", kind.majority), ("words", kind.words)):
        if baseline is not None:
            figures = kind.metric.score(truth, baseline(texts, targets, new, labels), labels)
            result[name] = {key: value for key, value in figures.items() if math.isfinite(value)}
    return result


def _labels(examples: Sequence[Example]) -> tuple[str, ...]:
    """Every label of these rows by name; () where the metric asks for none."""
    found: set[str] = set()
    for example in examples:
        if isinstance(example.target, Label):
            found.add(example.target.name)
        elif isinstance(example.target, LabelSet):
            found.update(example.target.names)
        elif isinstance(example.target, Tagged):
            found.update(example.target.tags)
    return tuple(sorted(found))


def _sides(examples: Sequence[Example], labels: tuple[str, ...]) -> Sides:
    """Texts and targets as baselines and metrics take them."""
    place = {label: number for number, label in enumerate(labels)}
    texts: list[Sequence[str]] = []
    targets: list[Any] = []
    for example in examples:
        target = example.target
        texts.append(example.texts)
        if isinstance(target, Label):
            targets.append(place[target.name])
        elif isinstance(target, LabelSet):
            targets.append([label in target.names for label in labels])
        elif isinstance(target, ScoreTarget):
            targets.append(target.value)
        elif isinstance(target, ChoiceIndex):
            targets.append(target.index)
        elif isinstance(target, Tagged):
            texts[-1] = [example.texts[0][start:end] for start, end in target.units]
            targets.append(list(target.tags))
        elif isinstance(target, Answers):
            targets.append([*(text for text, _ in target.placed), *target.unplaced])
        else:
            raise TextError(f"{example.source}, line {example.line}: there is no target to score")
    listed = isinstance(examples[0].target, Tagged | Answers)
    return texts, targets if listed else np.array(targets)
