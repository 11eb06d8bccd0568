"""Tasks by name: made from training rows, or from what a folder tells of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bertsmith.errors import ConfigError, unknown
from bertsmith.labeled.example import Example
from bertsmith.tasks.answer import FindAnswer
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.from_data import classify_from, multilabel_from, regress_from
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.tag import Tag, tag_from
from bertsmith.tasks.task import Task

LABELED = ("classify", "multilabel", "tag")  # tasks whose loss can be chosen

STORED: dict[str, Callable[[Mapping[str, Any]], Task]] = {
    "classify": lambda told: Classify(labels=tuple(told["labels"])),
    "multilabel": lambda told: Multilabel(
        labels=tuple(told["labels"]), thresholds=tuple(told["thresholds"])
    ),
    "regress": lambda told: Regress(mean=told["mean"], spread=told["spread"]),
    "tag": Tag.from_json,
    "answer": lambda told: FindAnswer(
        **{name: told[name] for name in ("no_answer", "threshold", "longest", "n_best")},
        question_limit=told["question_limit"],
    ),
    "choose": lambda _: Choose(),
}


def task_from_data(
    name: str, examples: Sequence[Example], *, loss: LossSettings, crf: bool = False
) -> Task:
    """The task of these training rows."""
    if name not in STORED:
        raise unknown("task", name, STORED)
    if crf and name != "tag":
        raise ConfigError(f"task.crf is a setting of tagging; the task is {name}")
    if loss != CrossEntropySettings() and name not in LABELED:
        raise ConfigError(f"the loss of {name} cannot be chosen; leave the section loss out")
    if name == "classify":
        return classify_from(examples, loss)
    if name == "multilabel":
        return multilabel_from(examples, loss)
    if name == "regress":
        return regress_from(examples)
    if name == "tag":
        return tag_from(examples, loss, crf=crf)
    return FindAnswer.for_examples(examples) if name == "answer" else Choose()


def task_from_json(values: Mapping[str, Any]) -> Task:
    """The task that a folder tells of."""
    name = str(values.get("name"))
    if name not in STORED:
        raise unknown("task", name, STORED)
    return STORED[name](values)
