"""Logits and task of an ensemble: models of one task averaged as its descriptor says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.tasks.task import Logits, Task


def joint_task(tasks: Sequence[Task]) -> Task:
    """The task of all models together."""
    first = tasks[0]
    for other in tasks[1:]:
        if (other.name, other.labels) != (first.name, first.labels):
            raise ConfigError(
                "the models of an ensemble must have the same task and labels: one is for "
                f"{_shown(first)}, another for {_shown(other)}"
            )
    return first if len(tasks) == 1 else first.kind.joint_task(tasks)


def joint_logits(tasks: Sequence[Task], given: Sequence[Sequence[Logits]]) -> list[Logits]:
    """Logits of each model, entry by entry -> logits that `joint_task` decodes."""
    if len(given) == 1:
        return list(given[0])
    join = tasks[0].kind.joint_logits
    return [
        join(tasks, [np.asarray(one, dtype=np.float64) for one in entry]).astype(np.float32)
        for entry in zip(*given, strict=True)
    ]


def _shown(task: Task) -> str:
    labels = f" ({', '.join(task.labels[:5])}{' ...' if len(task.labels) > 5 else ''})"
    return f"{task.name}{labels if task.labels else ''}"
