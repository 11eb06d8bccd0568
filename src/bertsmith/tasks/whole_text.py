"""Defaults for tasks with one prediction per example."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bertsmith.labeled.example import Example
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, Targets, text_features
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Task
from bertsmith.text.tokenizer import Tokenizer

Array = NDArray[Any]


class WholeText(Task, Protocol):
    """One class, several, a number or a choice per example."""

    __slots__ = ()

    @abstractmethod
    def truth(self, examples: Sequence[Example]) -> Array:
        """(N,) or (N, C): targets of labeled examples, as the task's metric takes them."""

    @abstractmethod
    def predicted(self, predictions: Sequence[Prediction]) -> Any:
        """Predictions as the task's metric takes them."""

    def loss_targets(self, truth: Array) -> Array:
        """Targets as the loss takes them: (N, ...) -> (N, ...)."""
        return truth

    def targets(self, examples: Sequence[Example]) -> Targets:
        """The loss's target of each example, None for those without a label."""
        labeled = [example for example in examples if example.target is not None]
        wanted = iter(self.loss_targets(self.truth(labeled)) if labeled else ())
        return [
            None if example.target is None else np.asarray(next(wanted)) for example in examples
        ]

    def features(
        self, examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage per example, or its windows."""
        return text_features(examples, tokenizer, lengths, self.targets(examples))

    def count(self, batch: TaskBatch) -> int:
        """One per example."""
        return batch.examples

    def compared(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> tuple[Any, Any]:
        """Targets and predictions of labeled examples."""
        return self.truth(examples), self.predicted(predictions)
