"""What a task is: it turns examples into features, scores logits, and turns them into answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.labeled.example import Example
from bertsmith.metrics import METRICS
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.text.tokenizer import Tokenizer

Logits = NDArray[np.float32]
Loss = Callable[[Tensor, TaskBatch], LossSum]
"""Logits and their batch -> the sum over `task.count(batch)` predictions."""


class Task(Protocol):
    """One kind of question that fine-tuning asks, with all that prediction needs to know."""

    @property
    def name(self) -> str:
        """Its name in recipes: classify, multilabel, regress, tag, answer, choose."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its outputs, () if they have none."""

    @property
    def outputs(self) -> int:
        """C, how many numbers its head gives for an example or a row."""

    @property
    def reads(self) -> Literal["text", "rows"]:
        """Whether its head reads a vector of the whole text or the rows `at`."""

    def features(
        self, examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> list[Feature]:
        """The passages of every example, in order; each says what was cut."""

    def count(self, batch: TaskBatch) -> int:
        """How many predictions the loss of a batch is the sum of, known before the pass."""

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) or (U, C) and the batch's targets -> LossSum."""

    def decode(
        self,
        logits: Sequence[Logits],
        features: Sequence[Feature],
        examples: Sequence[Example],
    ) -> list[Prediction]:
        """One answer an example.

        `logits` has an entry for each example, (C,), when the task reads texts, and for each
        feature, (U, C), when it reads rows.
        """

    def compared(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> tuple[Any, Any]:
        """Truth and answers of labeled examples, as `METRICS[name]` takes them."""

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Task:
        """The task with thresholds set to what is best on these examples, if it has any."""

    def to_json(self) -> Mapping[str, Any]:
        """Plain values that `from_json` of its table entry takes."""


def score(
    task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, float]:
    """The figures of labeled examples, the main one first."""
    truth, said = task.compared(examples, predictions)
    return METRICS[task.name].score(truth, said, task.labels)
