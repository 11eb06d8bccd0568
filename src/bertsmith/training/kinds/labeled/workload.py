"""The workload of fine-tuning: batches of labeled examples and their losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from torch import nn

from bertsmith.errors import ConfigError
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch, task_batch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.inference import example_batches
from bertsmith.tasks.model.columns import Auxiliary, auxiliary_counts
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.regularizers import RDrop, TokenDropout
from bertsmith.tasks.task import Loss, Task
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.kinds.labeled.recipe import PlanSettings
from bertsmith.training.loop.epochs import Draw, EpochRows, Numbers
from bertsmith.training.loop.workload import Losses, Workload

PART = "task"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regularizers:
    """What changes the batches and the loss of training alone."""

    token_dropout: TokenDropout | None = None
    r_drop: RDrop | None = None


def one_pass(model: TaskModel, batch: TaskBatch, loss: Loss) -> LossSum:
    """The loss of a batch without R-Drop."""
    return loss(model(batch), batch)


class FinetuneWorkload(Workload):
    """Micro-batches of labeled examples, and their loss.

    Step s reads examples s x batch to (s + 1) x batch of an endless row of epochs, each in an
    order of its own; the same on any number of ranks.
    """

    def __init__(
        self,
        task: Task,
        features: Sequence[Feature],
        *,
        plan: PlanSettings,
        seed: int,
        ranks: Ranks,
        loss: Loss | None = None,
        auxiliary: Sequence[Auxiliary] = (),
        regularizers: Regularizers = Regularizers(),  # noqa: B008 - frozen
    ) -> None:
        """`loss` takes the place of the task's own."""
        runs = groupby(features, key=lambda feature: feature.example)
        self._examples = [list(run) for _, run in runs]
        if not self._examples:
            raise ConfigError("there is no example to train on")
        self._task = task
        self._columns = tuple(auxiliary)
        self._loss = loss or task.loss
        self._forward = regularizers.r_drop or one_pass
        self._dropout = regularizers.token_dropout
        self._micro_tokens = plan.micro_tokens
        size = len(self._examples)
        draw = _drawn(_classes(self._examples), size) if plan.sampler == "balanced" else None
        self._rows = EpochRows(size, batch=plan.batch, seed=seed, ranks=ranks, draw=draw)

    @property
    def steps_per_epoch(self) -> float:
        """How many steps read every example once."""
        return self._rows.steps_of_epoch

    @property
    def weights(self) -> Mapping[str, float]:
        """The task's part, and one for each auxiliary target under the name of its column."""
        return {PART: 1.0, **{one.column: one.weight for one in self._columns}}

    def micro_batches(self, step: int, share: float) -> list[TaskBatch]:
        """This rank's micro-batches of a step."""
        # Numbered anew: an example may come twice in a step, at the seam of two epochs.
        features = [
            replace(feature, example=place)
            for place, reading in enumerate(self._rows.own(step).tolist())
            for feature in self._read(reading)
        ]
        return [
            task_batch([features[at] for at in part])
            for part in example_batches(features, self._micro_tokens)
        ]

    def counts(self, batch: TaskBatch) -> dict[str, int]:
        """Predictions, known before the pass."""
        return {
            PART: self._task.count(batch),
            **auxiliary_counts(self._columns, batch.auxiliary),
        }

    def loss(self, model: nn.Module, batch: TaskBatch) -> Losses:
        """The task's loss, and those of the auxiliary targets."""
        if not isinstance(model, TaskModel):
            raise TypeError(f"fine-tuning trains a TaskModel, not {type(model)}")
        if not self._columns:
            return {PART: self._forward(model, batch, self._loss)}, {}
        logits, further = model.with_auxiliary(batch)
        parts = {PART: self._loss(logits, batch)}
        for number, (column, rows) in enumerate(zip(self._columns, further, strict=True)):
            parts[column.column] = column.loss(rows, batch.auxiliary[:, number])
        return parts, {}

    def tokens(self, batch: TaskBatch) -> int:
        """The real tokens of a micro-batch."""
        return batch.tokens

    def examples(self, step: int) -> str:
        """Which examples a step reads, in words."""
        return self._rows.words(step)

    def held_out(self) -> Iterator[TaskBatch]:
        """None: development rows are evaluated by the metrics of their predictions."""
        return iter(())

    def _read(self, reading: int) -> list[Feature]:
        """The passages of an example as training sees them this time."""
        passages = self._examples[self._rows.row(reading)]
        return passages if self._dropout is None else self._dropout.hide(passages, reading)


def _drawn(classes: Sequence[Numbers], size: int) -> Draw:
    """Rows of classes that are drawn equally often."""

    def draw(random: np.random.Generator) -> Numbers:
        drawn = random.integers(len(classes), size=size)
        return np.array([random.choice(classes[c]) for c in drawn])

    return draw


def _classes(examples: Sequence[Sequence[Feature]]) -> list[Numbers]:
    """The numbers of the examples of each class."""
    by_class: dict[int, list[int]] = {}
    for number, parts in enumerate(examples):
        target = parts[0].target
        if target is None or target.ndim or not np.issubdtype(target.dtype, np.integer):
            raise ConfigError("plan.sampler = balanced needs one class per example")
        by_class.setdefault(int(target), []).append(number)
    return [np.array(numbers) for numbers in by_class.values()]
