"""Any number of classes for a text, each with a threshold of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.labeled.example import Example, Labels
from bertsmith.metrics import Decisions
from bertsmith.metrics.multilabel import tune_thresholds
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.losses import CrossEntropySettings, LossSettings, labels_loss, weights_tensor
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Logits
from bertsmith.tasks.whole_text import WholeText

HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilabel(WholeText):
    """Multi-label classification; thresholds are tuned on held-out rows and stored."""

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()  # one a label; () for one half each
    settings: LossSettings = field(default_factory=CrossEntropySettings)
    weights: tuple[float, ...] | None = None

    name: Literal["multilabel"] = "multilabel"

    @property
    def outputs(self) -> int:
        """One a class."""
        return len(self.labels)

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) -> LossSum."""
        return labels_loss(
            logits, batch.wanted, self.settings, weights_tensor(self.weights, logits)
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

    def truth(self, examples: Sequence[Example]) -> NDArray[np.bool_]:
        """(N, C) wanted."""
        return np.stack([self._row(example) for example in examples])

    def learned(self, truth: NDArray[np.bool_]) -> NDArray[np.float32]:
        """0 and 1."""
        return truth.astype(np.float32)

    def said(self, predictions: Sequence[Prediction]) -> Decisions:
        """What was given, with which probabilities."""
        given = np.array([[label in _names(one) for label in self.labels] for one in predictions])
        return Decisions(self._odds(predictions), given)

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Self:
        """With the thresholds that give each label its best F1 on these examples."""
        limits = tune_thresholds(self._odds(predictions), self.truth(examples))
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
                f"{example.place}: the labels are {target!r}; known labels: "
                f"{', '.join(self.labels[:20])}"
            )
        chosen = set(target.names)
        return np.array([label in chosen for label in self.labels])


def _names(prediction: Prediction) -> tuple[str, ...]:
    if not isinstance(prediction.value, tuple):
        raise TypeError(f"not a prediction of labels: {prediction.value!r}")
    return tuple(str(name) for name in prediction.value)
