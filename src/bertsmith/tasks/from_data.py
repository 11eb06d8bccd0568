"""A task from the rows it is to be learned from: labels, class weights, scale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from bertsmith.errors import ConfigError
from bertsmith.labeled.example import Example, Label, Labels, Score
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.losses import LossSettings, class_weights
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.regress import Regress

FEWEST_CLASSES = 2


def classify_from(examples: Sequence[Example], loss: LossSettings) -> Classify:
    """Classes in the order of their names."""
    counts = Counter(e.target.name for e in examples if isinstance(e.target, Label))
    labels = tuple(sorted(counts))
    if len(labels) < FEWEST_CLASSES:
        raise ConfigError(
            f"the training rows have {'one label' if labels else 'no label'}"
            f"{f' ({labels[0]!r})' if labels else ''}; a classifier needs two or more"
        )
    weights = class_weights(loss, labels, [counts[label] for label in labels])
    return Classify(labels=labels, settings=loss, weights=weights)


def multilabel_from(examples: Sequence[Example], loss: LossSettings) -> Multilabel:
    """Classes in the order of their names."""
    given = [e.target.names for e in examples if isinstance(e.target, Labels)]
    counts = Counter(name for names in given for name in names)
    labels = tuple(sorted(counts))
    if not labels:
        raise ConfigError("no training row has a label")
    weights = class_weights(loss, labels, [counts[label] for label in labels])
    return Multilabel(labels=labels, settings=loss, weights=weights)


def regress_from(examples: Sequence[Example]) -> Regress:
    """The mean and the spread of the numbers."""
    values = [e.target.value for e in examples if isinstance(e.target, Score)]
    if not values:
        raise ConfigError("no training row has a number")
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if spread == 0.0:
        raise ConfigError(
            f"all training rows have the number {values[0]:g}; nothing can be learned"
        )
    return Regress(mean=mean, spread=spread)
