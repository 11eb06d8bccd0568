"""R-Drop: KL penalty between two dropout passes (Liang et al. 2021, arXiv:2106.14448)."""

from __future__ import annotations

from dataclasses import dataclass

from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.kinds import TASKS, task_kind
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
