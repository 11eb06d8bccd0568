"""Any number of classes for a text, each with a threshold of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.data.examples.example import Example, Labels
from bertsmith.errors import TextError
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings, labels_loss, weights_tensor
from bertsmith.tasks.metrics import Decisions
from bertsmith.tasks.metrics.multilabel import tune_thresholds
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Logits, Task
from bertsmith.tasks.text_features import text_features, tokens_cut
from bertsmith.text.tokenizer import Tokenizer

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilabel:
    """Multi-label classification; thresholds are tuned on held-out rows and stored."""

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()  # one a label; () for one half each
    settings: LossSettings = field(default_factory=CrossEntropySettings)
    weights: tuple[float, ...] | None = None

    name: Literal["multilabel"] = "multilabel"
    reads: Literal["text"] = "text"

    @property
    def outputs(self) -> int:
        """One a class."""
        return len(self.labels)

    def features(
        self, examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage an example, or its windows."""

        def aim(example: Example) -> NDArray[np.float32] | None:
            if example.target is None:
                return None
            row: NDArray[np.float32] = self._row(example).astype(np.float32)
            return row

        return text_features(examples, tokenizer, lengths, aim)

    def count(self, batch: TaskBatch) -> int:
        """One an example."""
        return batch.examples

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) -> LossSum."""
        if batch.targets is None:
            raise TextError("a batch without labels has no loss")
        return labels_loss(
            logits, batch.targets, self.settings, weights_tensor(self.weights, logits)
        )

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The classes whose probability reaches their threshold."""
        limits = self.thresholds or (HALF,) * len(self.labels)
        found = []
        for row, cut in zip(logits, tokens_cut(features, len(examples)), strict=True):
            odds = (1.0 / (1.0 + np.exp(-row.astype(np.float64)))).tolist()
            chosen = tuple(
                label
                for label, chance, limit in zip(self.labels, odds, limits, strict=True)
                if chance >= limit
            )
            named = dict(zip(self.labels, odds, strict=True))
            found.append(Prediction(value=chosen, probabilities=named, cut=cut))
        return found

    def compared(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> tuple[Any, Any]:
        """(N, C) wanted, and what was given with which probabilities."""
        truth = np.stack([self._row(example) for example in examples])
        given = np.array([[label in _names(one) for label in self.labels] for one in predictions])
        return truth, Decisions(self._odds(predictions), given)

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Task:
        """With the thresholds that give each label its best F1 on these examples."""
        truth = np.stack([self._row(example) for example in examples])
        limits = tune_thresholds(self._odds(predictions), truth)
        return replace(self, thresholds=tuple(float(limit) for limit in limits))

    def to_json(self) -> Mapping[str, Any]:
        """Plain values."""
        return {"labels": list(self.labels), "thresholds": list(self.thresholds)}

    def _odds(self, predictions: Sequence[Prediction]) -> NDArray[np.float64]:
        return np.array([[one.probabilities[name] for name in self.labels] for one in predictions])

    def _row(self, example: Example) -> NDArray[np.bool_]:
        target = example.target
        if not isinstance(target, Labels) or not set(target.names) <= set(self.labels):
            raise TextError(
                f"{example.source}, line {example.line}: the labels are {target!r}; known labels: "
                f"{', '.join(self.labels[:20])}"
            )
        chosen = set(target.names)
        return np.array([label in chosen for label in self.labels])


def _names(prediction: Prediction) -> tuple[str, ...]:
    if not isinstance(prediction.value, tuple):
        raise TypeError(f"not a prediction of labels: {prediction.value!r}")
    return tuple(str(name) for name in prediction.value)
