"""One of several classes for a text, a pair, or several fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.labeled.example import Example, Label
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings, class_loss, weights_tensor
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Logits
from bertsmith.tasks.whole_text import WholeText

Real = TypeVar("Real", bound=np.floating[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify(WholeText):
    """Single-label classification."""

    labels: tuple[str, ...]
    settings: LossSettings = field(default_factory=CrossEntropySettings)
    weights: tuple[float, ...] | None = None  # of the classes, in training

    name: Literal["classify"] = "classify"

    @property
    def outputs(self) -> int:
        """One a class."""
        return len(self.labels)

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) -> LossSum."""
        return class_loss(logits, batch.wanted, self.settings, weights_tensor(self.weights, logits))

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The most probable class of each example."""
        cuts = tokens_cut(features, len(examples))
        found = []
        for row, cut in zip(logits, cuts, strict=True):
            odds = softmax(row)
            best = int(odds.argmax())
            found.append(
                Prediction(
                    value=self.labels[best],
                    probabilities=dict(zip(self.labels, odds.tolist(), strict=True)),
                    confidence=float(odds[best]),
                    cut=cut,
                )
            )
        return found

    def truth(self, examples: Sequence[Example]) -> NDArray[np.int64]:
        """(N,) class numbers."""
        place = self._places()
        return np.array([number_of(example, place) for example in examples])

    def said(self, predictions: Sequence[Prediction]) -> NDArray[np.int64]:
        """(N,) class numbers."""
        place = self._places()
        return np.array([place[str(one.value)] for one in predictions])

    def to_json(self) -> Mapping[str, Any]:
        """Plain values."""
        return {"labels": list(self.labels)}

    def _places(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}


def number_of(example: Example, place: Mapping[str, int]) -> int:
    """The number of an example's class, or an error that says where it stands."""
    target = example.target
    if not isinstance(target, Label) or target.name not in place:
        raise TextError(
            f"{example.place}: the label is {target!r}; known labels: {', '.join(list(place)[:20])}"
        )
    return place[target.name]


def softmax(logits: NDArray[Real]) -> NDArray[Real]:
    """(..., C) -> (..., C), each row adding up to 1."""
    odds: NDArray[Real] = np.exp(logits - logits.max(axis=-1, keepdims=True))
    odds /= odds.sum(axis=-1, keepdims=True)
    return odds
