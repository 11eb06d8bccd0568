"""What several models of one task say together: probabilities averaged, or logits of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bertsmith.errors import ConfigError
from bertsmith.nn.crf import Crf
from bertsmith.tasks.answer.answer import FindAnswer
from bertsmith.tasks.classify import softmax
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.tag.tag import Tag
from bertsmith.tasks.task import Logits, Task

LEAST = 1e-12  # a probability this close to 0 or 1 is as good as that


def joint_task(tasks: Sequence[Task]) -> Task:
    """The task of all of them: thresholds and the scores of a CRF are means."""
    first = tasks[0]
    for other in tasks[1:]:
        if (other.name, other.labels) != (first.name, first.labels):
            raise ConfigError(
                f"an ensemble answers one question: one model is for {_shown(first)}, another for "
                f"{_shown(other)}"
            )
    multilabel = [one for one in tasks if isinstance(one, Multilabel)]
    if multilabel:
        limits = np.array([one.thresholds or (0.5,) * len(one.labels) for one in multilabel])
        return replace(multilabel[0], thresholds=tuple(limits.mean(axis=0).tolist()))
    if isinstance(first, Regress):
        return Regress()  # the numbers come on the scale of the data
    tags = [one for one in tasks if isinstance(one, Tag)]
    if tags:
        return replace(tags[0], crf=_joint_crf(tags))
    answers = [one for one in tasks if isinstance(one, FindAnswer)]
    if answers:
        if len({replace(one, threshold=0.0) for one in answers}) > 1:
            raise ConfigError("an ensemble reads questions alike; these models differ in how")
        mean = float(np.mean([one.threshold for one in answers]))
        return replace(answers[0], threshold=mean)
    return first


def joint_logits(tasks: Sequence[Task], given: Sequence[Sequence[Logits]]) -> list[Logits]:
    """Logits of each model, entry by entry -> logits whose answers are those of all together."""
    if len(given) == 1 and not isinstance(tasks[0], Regress):
        return list(given[0])
    return [
        _joined(tasks, [np.asarray(one, dtype=np.float64) for one in entry]).astype(np.float32)
        for entry in zip(*given, strict=True)
    ]


def _joined(tasks: Sequence[Task], entry: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    name = tasks[0].name
    if name == "classify":
        return _logs(np.mean([softmax(one) for one in entry], axis=0))
    if name == "choose":
        odds = [softmax(one.reshape(-1)).reshape(one.shape) for one in entry]
        return _logs(np.mean(odds, axis=0))
    if name == "multilabel":
        given = [1.0 / (1.0 + np.exp(-one)) for one in entry]
        mean = np.clip(np.mean(given, axis=0), LEAST, 1 - LEAST)
        odd: NDArray[np.float64] = np.log(mean / (1 - mean))
        return odd
    if name == "regress":
        scaled = [
            one * task.spread + task.mean
            for one, task in zip(entry, tasks, strict=True)
            if isinstance(task, Regress)
        ]
        return np.asarray(np.mean(scaled, axis=0))
    return np.asarray(np.mean(entry, axis=0))


def _logs(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(np.maximum(odds, LEAST))
    return logs


def _joint_crf(tags: Sequence[Tag]) -> Crf | None:
    parts = [one.crf for one in tags if one.crf is not None]
    if not parts:
        return None
    if len(parts) < len(tags):
        raise ConfigError("an ensemble of taggers has a CRF in all of them or in none")
    joint = Crf(parts[0].tags)
    with torch.no_grad():
        for name, weight in joint.named_parameters():
            every = [dict(part.named_parameters())[name].detach().float().cpu() for part in parts]
            weight.copy_(torch.stack(every).mean(dim=0))
    return joint


def _shown(task: Task) -> str:
    labels = f" ({', '.join(task.labels[:5])}{' ...' if len(task.labels) > 5 else ''})"
    return f"{task.name}{labels if task.labels else ''}"
