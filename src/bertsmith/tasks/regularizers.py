"""Regularization of fine-tuning: R-Drop and token dropout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.kinds import TASKS, task_kind
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Loss
from bertsmith.text.encoding import FieldEncoder

_STREAM = 1  # separates these draws from others with the same seed and number


@dataclass(frozen=True, slots=True)
class RDrop:
    """The mean loss of two dropout passes, plus `weight` times their symmetric KL divergence.

    Liang et al. 2021, arXiv:2106.14448.
    """

    weight: float

    @classmethod
    def of(cls, weight: float, task: str) -> RDrop | None:
        """None for no weight; refuses tasks whose predictions cannot be compared row by row."""
        if not weight:
            return None
        if task_kind(task).divergence is None:
            fits = ", ".join(name for name, kind in TASKS.items() if kind.divergence is not None)
            raise ConfigError(
                f"regularization.r_drop compares predictions of {fits}, and the task is {task}; "
                "leave it out"
            )
        return cls(weight)

    def __call__(self, model: TaskModel, batch: TaskBatch, loss: Loss) -> LossSum:
        """Both passes of a batch; its examples count once."""
        between = model.task.kind.divergence
        if between is None:
            raise ConfigError(f"R-Drop is not defined for the task {model.task.name}")
        first, second = model(batch), model(batch)
        one, other = loss(first, batch), loss(second, batch)
        divergence = between(first.float(), second.float())
        return LossSum((one.sum + other.sum) / 2 + self.weight * divergence, one.count)


@dataclass(frozen=True, slots=True)
class TokenDropout:
    """Replaces `share` of the tokens of a training text by `mask`, others in each epoch.

    Special tokens stay. Unlike attention dropout it costs no time.
    """

    share: float
    mask: int
    seed: int

    @classmethod
    def of(cls, share: float, tokenizer: FieldEncoder, seed: int) -> TokenDropout | None:
        """With the mask token of a vocabulary; None for a share of 0."""
        if not share:
            return None
        if tokenizer.special.mask is None:
            raise ConfigError(
                f"regularization.token_dropout={share:g} needs a mask token, and the vocabulary "
                "has none; leave it out"
            )
        return cls(share, tokenizer.special.mask, seed)

    def hide(self, passages: Sequence[Feature], reading: int) -> list[Feature]:
        """Mask the passages of an example; `reading` numbers the examples that training reads.

        Passages that overlap are masked independently.
        """
        key = np.array([self.seed, reading], dtype=np.uint64)
        random = np.random.Generator(np.random.Philox(key=key, counter=_STREAM << 64))
        masked = []
        for passage in passages:
            encoding = passage.encoding
            hidden = (random.random(len(encoding)) < self.share) & (encoding.fields >= 0)
            ids = np.where(hidden, np.int32(self.mask), encoding.ids)
            masked.append(replace(passage, encoding=replace(encoding, ids=ids)))
        return masked
