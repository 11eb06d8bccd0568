"""R-Drop: KL penalty between two dropout passes (Liang et al. 2021, arXiv:2106.14448)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Loss


@dataclass(frozen=True, slots=True)
class RDrop:
    """The task's loss as the mean of two dropout passes, plus `weight` times their divergence."""

    weight: float

    @classmethod
    def of(cls, weight: float, task: str) -> RDrop | None:
        """None for no weight; refuses tasks whose predictions cannot be compared row by row."""
        if not weight:
            return None
        if task not in DIVERGENCES:
            raise ConfigError(
                f"regularization.r_drop compares predictions of {', '.join(DIVERGENCES)}, and the "
                f"task is {task}; leave it out"
            )
        return cls(weight)

    def __call__(self, model: TaskModel, batch: TaskBatch, loss: Loss) -> LossSum:
        """Both passes of a batch; its examples count once."""
        first, second = model(batch), model(batch)
        one, other = loss(first, batch), loss(second, batch)
        divergence = DIVERGENCES[model.task.name](first.float(), second.float())
        return LossSum((one.sum + other.sum) / 2 + self.weight * divergence, one.count)


def _between_classes(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): both KL divergences of the classes, halved."""
    one, other = first.log_softmax(dim=1), second.log_softmax(dim=1)
    return ((one.exp() - other.exp()) * (one - other)).sum() / 2


def _between_labels(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): the same for yes or no, averaged over the labels as their loss is."""
    divergence = (first.sigmoid() - second.sigmoid()) * (first - second)
    return divergence.sum() / (2 * first.shape[1])


def _between_numbers(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): squared."""
    return F.mse_loss(first, second, reduction="sum")


DIVERGENCES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "classify": _between_classes,
    "multilabel": _between_labels,
    "regress": _between_numbers,
}
