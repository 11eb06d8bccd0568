"""Tasks by name: made from training rows, or from what a folder tells of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertsmith.errors import ConfigError, unknown
from bertsmith.labeled.example import Example, Label, Labels, Score
from bertsmith.tasks.answer.answer import FindAnswer
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings, class_weights
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.regress import Pair, Regress
from bertsmith.tasks.tag.tag import Tag, tag_from
from bertsmith.tasks.task import Task

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


def regress_from(examples: Sequence[Example], *, pair: Pair = "cross-encoder") -> Regress:
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
    return Regress(mean=mean, spread=spread, pair=pair)


LABELED = ("classify", "multilabel", "tag")  # tasks whose loss can be chosen

STORED: dict[str, Callable[[Mapping[str, Any]], Task]] = {
    "classify": lambda told: Classify(labels=tuple(told["labels"])),
    "multilabel": lambda told: Multilabel(
        labels=tuple(told["labels"]), thresholds=tuple(told["thresholds"])
    ),
    "regress": lambda stored: Regress(
        mean=stored["mean"], spread=stored["spread"], pair=stored.get("pair", "cross-encoder")
    ),
    "tag": Tag.from_json,
    "answer": lambda told: FindAnswer(
        **{name: told[name] for name in ("no_answer", "threshold", "longest", "n_best")},
        question_limit=told["question_limit"],
    ),
    "choose": lambda _: Choose(),
}


def task_from_data(
    name: str,
    examples: Sequence[Example],
    *,
    loss: LossSettings,
    crf: bool = False,
    pair: Pair = "cross-encoder",
) -> Task:
    """The task of these training rows."""
    if name not in STORED:
        raise unknown("task", name, STORED)
    if crf and name != "tag":
        raise ConfigError(f"task.crf is a setting of tagging; the task is {name}")
    if pair == "bi-encoder" and name != "regress":
        raise ConfigError(
            f"encoder.pair = bi-encoder learns a number for a pair, and the task is {name}; leave "
            "it out"
        )
    if loss != CrossEntropySettings() and name not in LABELED:
        raise ConfigError(f"the loss of {name} cannot be chosen; leave the section loss out")
    if name == "classify":
        return classify_from(examples, loss)
    if name == "multilabel":
        return multilabel_from(examples, loss)
    if name == "regress":
        return regress_from(examples, pair=pair)
    if name == "tag":
        return tag_from(examples, loss, crf=crf)
    return FindAnswer.for_examples(examples) if name == "answer" else Choose()


def task_from_json(values: Mapping[str, Any]) -> Task:
    """The task that a folder tells of."""
    name = str(values.get("name"))
    if name not in STORED:
        raise unknown("task", name, STORED)
    return STORED[name](values)
