"""A number for a text or a pair; it is learned on a scale of mean 0 and standard deviation 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.labeled.example import Example, Score
from bertsmith.nn.loss import LossSum, squared_error
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, text_features, tokens_cut
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Logits
from bertsmith.tasks.whole_text import WholeText
from bertsmith.text.tokenizer import Tokenizer

Pair = Literal["cross-encoder", "bi-encoder"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regress(WholeText):
    """Regression on numbers whose mean and spread in training were these.

    `pair`: a cross-encoder reads the texts of an example together; a bi-encoder reads each of two
    texts by itself and compares their vectors.
    """

    mean: float = 0.0
    spread: float = 1.0
    labels: tuple[str, ...] = ()
    pair: Pair = "cross-encoder"

    name: Literal["regress"] = "regress"

    @property
    def outputs(self) -> int:
        """One number."""
        return 1

    def features(
        self, examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage per example, or its windows; of a bi-encoder one per text."""
        return text_features(
            examples,
            tokenizer,
            lengths,
            self.targets(examples),
            bi_encoder=self.pair == "bi-encoder",
        )

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, 1) -> LossSum."""
        return squared_error(logits.squeeze(1), batch.wanted)

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The number of each example, on the scale of the data."""
        cuts = tokens_cut(features, len(examples))
        return [
            Prediction(value=float(row[0]) * self.spread + self.mean, cut=cut)
            for row, cut in zip(logits, cuts, strict=True)
        ]

    def truth(self, examples: Sequence[Example]) -> NDArray[np.float64]:
        """(N,) numbers."""
        return np.array([_value(example) for example in examples])

    def learned(self, truth: NDArray[np.float64]) -> NDArray[np.float32]:
        """On the scale of learning."""
        return ((truth - self.mean) / self.spread).astype(np.float32)

    def said(self, predictions: Sequence[Prediction]) -> NDArray[np.float64]:
        """(N,) numbers."""
        return np.array([_number(one) for one in predictions])

    def to_json(self) -> Mapping[str, Any]:
        """Plain values."""
        return {"mean": self.mean, "spread": self.spread, "pair": self.pair}


def _value(example: Example) -> float:
    if not isinstance(example.target, Score):
        raise TextError(f"{example.place}: {example.target!r} is no number to learn")
    return example.target.value


def _number(prediction: Prediction) -> float:
    if not isinstance(prediction.value, float):
        raise TypeError(f"not a predicted number: {prediction.value!r}")
    return prediction.value
