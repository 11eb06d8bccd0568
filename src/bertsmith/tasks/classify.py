"""Single-label classification of a text, a pair, or several fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, Label, shown_target
from bertsmith.metrics import CLASSIFICATION
from bertsmith.metrics.baselines import majority, words
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.losses import (
    CrossEntropySettings,
    LossSettings,
    class_loss,
    class_weights,
    weights_tensor,
)
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.stored import stored_fields
from bertsmith.tasks.task import (
    ClassPairs,
    Logits,
    PublishedHead,
    ScoredRows,
    Task,
    TaskKind,
    TaskOptions,
    WholeText,
)

Real = TypeVar("Real", bound=np.floating[Any])
LEAST = 1e-12  # probabilities are clipped to this before a logarithm


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify(WholeText):
    """Single-label classification."""

    labels: tuple[str, ...]
    settings: LossSettings = field(default_factory=CrossEntropySettings)
    weights: tuple[float, ...] | None = None  # of the classes, in training

    @property
    def kind(self) -> TaskKind:
        """Single-label classification."""
        return KIND

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) -> LossSum."""
        return class_loss(logits, batch.wanted, self.settings, weights_tensor(self.weights, logits))

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The most probable class of each example."""
        cuts = tokens_cut(features, len(examples))
        predictions = []
        for row, cut in zip(logits, cuts, strict=True):
            odds = softmax(row)
            best = int(odds.argmax())
            predictions.append(
                Prediction(
                    value=self.labels[best],
                    probabilities=dict(zip(self.labels, odds.tolist(), strict=True)),
                    confidence=float(odds[best]),
                    cut=cut,
                )
            )
        return predictions

    def truth(self, examples: Sequence[Example]) -> NDArray[np.int64]:
        """(N,) class numbers."""
        numbers = self._numbers()
        return np.array([_class_number(example, numbers) for example in examples])

    def predicted(self, predictions: Sequence[Prediction]) -> NDArray[np.int64]:
        """(N,) class numbers."""
        numbers = self._numbers()
        return np.array([numbers[str(one.value)] for one in predictions])

    def _numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}


def _class_number(example: Example, numbers: Mapping[str, int]) -> int:
    target = example.target
    if not isinstance(target, Label) or target.name not in numbers:
        known = ", ".join(list(numbers)[:20])
        raise TextError(
            f"{example.place}: the label is {shown_target(target)}; known labels: {known}"
        )
    return numbers[target.name]


def classify_from(examples: Sequence[Example], options: TaskOptions) -> Classify:
    """Classes in the order of their names."""
    counts = Counter(e.target.name for e in examples if isinstance(e.target, Label))
    labels = tuple(sorted(counts))
    if len(labels) < 2:
        raise ConfigError(
            f"the training rows have {'one label' if labels else 'no label'}"
            f"{f' ({labels[0]!r})' if labels else ''}; a classifier needs two or more"
        )
    weights = class_weights(options.loss, labels, [counts[label] for label in labels])
    return Classify(labels=labels, settings=options.loss, weights=weights)


def softmax(logits: NDArray[Real]) -> NDArray[Real]:
    """(..., C) -> (..., C), each row adding up to 1."""
    odds: NDArray[Real] = np.exp(logits - logits.max(axis=-1, keepdims=True))
    odds /= odds.sum(axis=-1, keepdims=True)
    return odds


def log_mean(probabilities: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Distributions of several models, of one shape -> the logarithm of their mean."""
    logs: NDArray[np.float64] = np.log(np.maximum(np.mean(probabilities, axis=0), LEAST))
    return logs


def class_divergence(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): both KL divergences of the class distributions, halved."""
    one, other = first.log_softmax(dim=1), second.log_softmax(dim=1)
    return ((one.exp() - other.exp()) * (one - other)).sum() / 2


def _joint_logits(
    tasks: Sequence[Task], entry: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    return log_mean([softmax(one) for one in entry])


def _class_pairs(rows: ScoredRows, by_type: bool) -> ClassPairs:
    return list(rows.labels), rows.truth, rows.predicted


KIND = TaskKind(
    name="classify",
    title="single-label classification",
    target="label",
    metric=CLASSIFICATION,
    from_data=classify_from,
    from_json=lambda values: stored_fields(Classify, values, "labels"),
    from_labels=lambda labels: Classify(labels=labels),
    head=PublishedHead(problem="single_label_classification"),
    loss_selectable=True,
    divergence=class_divergence,
    majority=majority.classify,
    words=words.classify_words,
    joint_logits=_joint_logits,
    class_pairs=_class_pairs,
    scores_classes=True,
    figures=("accuracy", "f1_macro", "mcc"),
)
