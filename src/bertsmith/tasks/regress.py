"""Regression on a text or a pair; numbers are standardized for training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, ScoreTarget, shown_target
from bertsmith.metrics import REGRESSION
from bertsmith.metrics.arrays import Floats
from bertsmith.metrics.baselines import majority, words
from bertsmith.metrics.correlation import residual_report
from bertsmith.nn.loss import LossSum, squared_error
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, text_features, tokens_cut
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.stored import stored_fields
from bertsmith.tasks.task import (
    Logits,
    Pair,
    PublishedHead,
    ScoredRows,
    Task,
    TaskKind,
    TaskOptions,
    WholeText,
)
from bertsmith.text.encoding import FieldEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Regress(WholeText):
    """Regression on numbers with this mean and standard deviation (`spread`) in training.

    `pair`: a cross-encoder reads the texts of an example together; a bi-encoder reads each of two
    texts by itself and compares their vectors.
    """

    mean: float = 0.0
    spread: float = 1.0
    labels: tuple[str, ...] = ()
    pair: Pair = "cross-encoder"

    @property
    def kind(self) -> TaskKind:
        """Regression."""
        return KIND

    @property
    def bi_encoder(self) -> bool:
        """Whether the texts of a pair are encoded separately."""
        return self.pair == "bi-encoder"

    def features(
        self, examples: Sequence[Example], tokenizer: FieldEncoder, lengths: LengthSettings
    ) -> list[Feature]:
        """One passage per example, or its windows; of a bi-encoder one per text."""
        targets = self.targets(examples)
        return text_features(examples, tokenizer, lengths, targets, bi_encoder=self.bi_encoder)

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

    def loss_targets(self, truth: NDArray[np.float64]) -> NDArray[np.float32]:
        """Standardized."""
        return ((truth - self.mean) / self.spread).astype(np.float32)

    def predicted(self, predictions: Sequence[Prediction]) -> NDArray[np.float64]:
        """(N,) numbers."""
        return np.array([one.value_as(float) for one in predictions])

    def to_json(self) -> Mapping[str, Any]:
        """JSON values."""
        return {"mean": self.mean, "spread": self.spread, "pair": self.pair}


def regress_from(examples: Sequence[Example], options: TaskOptions) -> Regress:
    """With the mean and the standard deviation of the numbers."""
    values = [e.target.value for e in examples if isinstance(e.target, ScoreTarget)]
    if not values:
        raise ConfigError("no training row has a number")
    mean = math.fsum(values) / len(values)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    if spread == 0.0:
        raise ConfigError(
            f"all training rows have the number {values[0]:g}; nothing can be learned"
        )
    return Regress(mean=mean, spread=spread, pair=options.pair)


def _value(example: Example) -> float:
    if not isinstance(example.target, ScoreTarget):
        raise TextError(
            f"{example.place}: the target is {shown_target(example.target)}, not a number"
        )
    return example.target.value


def _joint_logits(
    tasks: Sequence[Task], entry: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The mean of the numbers on the scale of the data: models may standardize differently."""
    scaled = [
        one * task.spread + task.mean
        for one, task in zip(entry, tasks, strict=True)
        if isinstance(task, Regress)
    ]
    return np.asarray(np.mean(scaled, axis=0))


def _difference(first: Tensor, second: Tensor) -> Tensor:
    return F.mse_loss(first, second, reduction="sum")


def _error_weight(rows: ScoredRows) -> Floats:
    """(N,) absolute errors."""
    away: Floats = np.abs(rows.predicted - rows.truth)
    return away


def _row_score(truth: Any, predicted: Any) -> Floats:
    return np.asarray(-np.abs(np.asarray(truth) - np.asarray(predicted)))


def _sides(example: Example, prediction: Prediction, task: Task) -> tuple[str, str]:
    return f"{_value(example):.4g}", f"{prediction.value_as(float):.4g}"


KIND = TaskKind(
    name="regress",
    title="regression",
    target="number",
    metric=REGRESSION,
    from_data=regress_from,
    from_json=lambda values: stored_fields(Regress, values, "mean", "spread", "pair"),
    from_labels=lambda labels: Regress(),
    head=PublishedHead(problem="regression"),
    bi_encoder=True,
    labels_from_all=False,
    divergence=_difference,
    majority=majority.regress,
    words=words.regress_words,
    joint_task=lambda tasks: Regress(),  # `_joint_logits` is on the scale of the data
    joint_logits=_joint_logits,
    right=lambda rows: None,
    error_weight=_error_weight,
    row_score=_row_score,
    sides=_sides,
    sections=lambda rows: {"numbers": residual_report(rows.truth, rows.predicted)},
    columns=("prediction", "tokens_cut"),
    figures=("spearman", "pearson", "mse"),
    majority_title="training mean",
)
