"""What tasks with one answer for a whole example have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bertsmith.labeled.example import Example
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, Targets, text_features
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.text.tokenizer import Tokenizer

Array = NDArray[Any]


class WholeText(Protocol):
    """One class, several, a number or a choice for an example: the defaults of `Task`."""

    __slots__ = ()

    @property
    def reads(self) -> Literal["text"]:
        """A vector of the whole text."""
        return "text"

    @abstractmethod
    def truth(self, examples: Sequence[Example]) -> Array:
        """(N,) or (N, C): what labeled examples ask for, as the task's metric takes it."""

    @abstractmethod
    def said(self, predictions: Sequence[Prediction]) -> Any:
        """What predictions say, as the task's metric takes it."""

    def learned(self, truth: Array) -> Array:
        """The truth as the loss takes it: (N, ...) -> (N, ...)."""
        return truth

    def targets(self, examples: Sequence[Example]) -> Targets:
        """What the loss takes for each example, None for those without a label."""
        labeled = [example for example in examples if example.target is not None]
        wanted = iter(self.learned(self.truth(labeled)) if labeled else ())
        return [
            None if example.target is None else np.asarray(next(wanted)) for example in examples
        ]

    def features(
        self, examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage an example, or its windows."""
        return text_features(examples, tokenizer, lengths, self.targets(examples))

    def count(self, batch: TaskBatch) -> int:
        """One an example."""
        return batch.examples

    def compared(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> tuple[Any, Any]:
        """Truth and answers of labeled examples."""
        return self.truth(examples), self.said(predictions)

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Self:
        """There is nothing to tune."""
        return self
