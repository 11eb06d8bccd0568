"""The table of tasks: one line each. Its file holds everything else that is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bertsmith.errors import ConfigError, unknown
from bertsmith.labeled.example import PAIR_TASKS, Example
from bertsmith.tasks import choose, classify, multilabel, regress
from bertsmith.tasks.answer import answer
from bertsmith.tasks.losses import CrossEntropySettings
from bertsmith.tasks.tag import tag
from bertsmith.tasks.task import Task, TaskKind, TaskOptions, TaskSettings

TASKS: dict[str, TaskKind] = {
    "classify": classify.KIND,
    "multilabel": multilabel.KIND,
    "regress": regress.KIND,
    "tag": tag.KIND,
    "answer": answer.KIND,
    "choose": choose.KIND,
}


def task_kind(name: str) -> TaskKind:
    """The descriptor of a task, by name."""
    if name not in TASKS:
        raise unknown("task", name, (*TASKS, *PAIR_TASKS))
    return TASKS[name]


def task_from_data(
    kind: TaskKind, examples: Sequence[Example], options: TaskOptions | None = None
) -> Task:
    """The task of these training rows."""
    options = options or TaskOptions()
    plain = TaskSettings()
    for name in TaskSettings.model_fields:
        if name not in kind.settings and getattr(options.settings, name) != getattr(plain, name):
            fits = ", ".join(one.name for one in TASKS.values() if name in one.settings)
            raise ConfigError(f"task.{name} is a setting of {fits}; the task is {kind.name}")
    if options.pair == "bi-encoder" and not kind.bi_encoder:
        raise ConfigError(
            f"encoder.pair = bi-encoder learns a number for a pair, and the task is {kind.name}; "
            "leave it out"
        )
    if options.loss != CrossEntropySettings() and not kind.loss_selectable:
        raise ConfigError(f"the loss of {kind.name} cannot be chosen; leave the section loss out")
    return kind.from_data(examples, options)


def task_from_json(values: Mapping[str, Any]) -> Task:
    """The task that a model folder describes."""
    return task_kind(str(values.get("name"))).from_json(values)
