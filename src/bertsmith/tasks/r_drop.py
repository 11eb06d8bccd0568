"""Two readings of every training text, under other dropout, have to agree.

R-Drop (Liang et al. 2021, arXiv:2106.14448).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Loss


def check_agreement(task: str) -> None:
    """Refuse tasks whose answers cannot be compared row by row."""
    if task not in DIFFERENCES:
        raise ConfigError(
            f"encoder.agreement compares answers of {', '.join(DIFFERENCES)}, and the task is "
            f"{task}; leave it out"
        )


def read_twice(model: TaskModel, batch: TaskBatch, loss: Loss, weight: float) -> LossSum:
    """The mean loss of two readings and `weight` times what they differ by, counted once."""
    first, second = model(batch), model(batch)
    one, other = loss(first, batch), loss(second, batch)
    apart = DIFFERENCES[model.task.name](first.float(), second.float())
    return LossSum((one.sum + other.sum) / 2 + weight * apart, one.count)


def _classes_differ(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): both divergences of the classes' odds, halved."""
    one, other = first.log_softmax(dim=1), second.log_softmax(dim=1)
    return ((one.exp() - other.exp()) * (one - other)).sum() / 2


def _labels_differ(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): the same for yes or no, averaged over the labels as their loss is."""
    apart = (first.sigmoid() - second.sigmoid()) * (first - second)
    return apart.sum() / (2 * first.shape[1])


def _numbers_differ(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): squared."""
    return F.mse_loss(first, second, reduction="sum")


DIFFERENCES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "classify": _classes_differ,
    "multilabel": _labels_differ,
    "regress": _numbers_differ,
}
