"""Multi-label classification: any number of classes per text, each with its own threshold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Example, LabelSet, shown_target
from bertsmith.metrics import MULTILABEL, Decisions
from bertsmith.metrics.arrays import Bools, Floats
from bertsmith.metrics.baselines import majority, words
from bertsmith.metrics.multilabel import label_report, tune_thresholds
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.losses import (
    CrossEntropySettings,
    LossSettings,
    class_weights,
    labels_loss,
    weights_tensor,
)
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.stored import stored_fields
from bertsmith.tasks.task import (
    Logits,
    Outcomes,
    PublishedHead,
    ScoredRows,
    Task,
    TaskKind,
    TaskOptions,
    WholeText,
)

HALF = 0.5
LEAST = 1e-12  # a probability this close to 0 or 1 is clipped
NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilabel(WholeText):
    """Multi-label classification; thresholds are tuned on held-out rows and stored."""

    labels: tuple[str, ...]
    thresholds: tuple[float, ...] = ()  # one per label; (): one half each
    settings: LossSettings = field(default_factory=CrossEntropySettings)
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.thresholds and len(self.thresholds) != len(self.labels):
            raise ConfigError(
                f"{len(self.thresholds)} thresholds for {len(self.labels)} labels; give one each"
            )

    @property
    def kind(self) -> TaskKind:
        """Multi-label classification."""
        return KIND

    @property
    def limits(self) -> tuple[float, ...]:
        """The threshold of each label."""
        return self.thresholds or (HALF,) * len(self.labels)

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(E, C) -> LossSum."""
        return labels_loss(
            logits, batch.wanted, self.settings, weights_tensor(self.weights, logits)
        )

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The classes whose probability reaches their threshold."""
        predictions = []
        for row, cut in zip(logits, tokens_cut(features, len(examples)), strict=True):
            odds = (1.0 / (1.0 + np.exp(-row.astype(np.float64)))).tolist()
            chosen = tuple(
                label
                for label, chance, limit in zip(self.labels, odds, self.limits, strict=True)
                if chance >= limit
            )
            named = dict(zip(self.labels, odds, strict=True))
            predictions.append(Prediction(value=chosen, probabilities=named, cut=cut))
        return predictions

    def truth(self, examples: Sequence[Example]) -> NDArray[np.bool_]:
        """(N, C) booleans."""
        return np.stack([self._row(example) for example in examples])

    def loss_targets(self, truth: NDArray[np.bool_]) -> NDArray[np.float32]:
        """0 and 1."""
        return truth.astype(np.float32)

    def predicted(self, predictions: Sequence[Prediction]) -> Decisions:
        """Chosen labels and probabilities."""
        chosen = [one.value_as(tuple) for one in predictions]
        given = np.array([[label in names for label in self.labels] for names in chosen])
        return Decisions(self._odds(predictions), given)

    def tuned(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> Self:
        """With the thresholds that give each label its best F1 on these examples."""
        limits = tune_thresholds(self._odds(predictions), self.truth(examples))
        return replace(self, thresholds=tuple(float(limit) for limit in limits))

    def to_json(self) -> Mapping[str, Any]:
        """JSON values."""
        return {"labels": list(self.labels), "thresholds": list(self.thresholds)}

    def _odds(self, predictions: Sequence[Prediction]) -> NDArray[np.float64]:
        return np.array([[one.probabilities[name] for name in self.labels] for one in predictions])

    def _row(self, example: Example) -> NDArray[np.bool_]:
        target = example.target
        if not isinstance(target, LabelSet) or not set(target.names) <= set(self.labels):
            raise TextError(
                f"{example.place}: the labels are {shown_target(target)}; known labels: "
                f"{', '.join(self.labels[:20])}"
            )
        chosen = set(target.names)
        return np.array([label in chosen for label in self.labels])


def multilabel_from(examples: Sequence[Example], options: TaskOptions) -> Multilabel:
    """Classes in the order of their names."""
    given = [e.target.names for e in examples if isinstance(e.target, LabelSet)]
    counts = Counter(name for names in given for name in names)
    labels = tuple(sorted(counts))
    if not labels:
        raise ConfigError("no training row has a label")
    weights = class_weights(options.loss, labels, [counts[label] for label in labels])
    return Multilabel(labels=labels, settings=options.loss, weights=weights)


def _own(tasks: Sequence[Task]) -> list[Multilabel]:
    return [one for one in tasks if isinstance(one, Multilabel)]


def _joint_task(tasks: Sequence[Task]) -> Multilabel:
    """With the mean of the thresholds."""
    limits = np.array([one.limits for one in _own(tasks)]).mean(axis=0)
    return replace(_own(tasks)[0], thresholds=tuple(limits.tolist()))


def _joint_logits(
    tasks: Sequence[Task], entry: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Logits of the mean probabilities."""
    given = [1.0 / (1.0 + np.exp(-one)) for one in entry]
    mean = np.clip(np.mean(given, axis=0), LEAST, 1 - LEAST)
    logits: NDArray[np.float64] = np.log(mean / (1 - mean))
    return logits


def _divergence(first: Tensor, second: Tensor) -> Tensor:
    """(E, C), (E, C) -> (): both binary KL divergences, halved, averaged over labels."""
    apart = (first.sigmoid() - second.sigmoid()) * (first - second)
    return apart.sum() / (2 * first.shape[1])


def _right(rows: ScoredRows) -> Bools:
    return np.asarray((rows.truth == rows.predicted.chosen).all(axis=1))


def _error_weight(rows: ScoredRows) -> Floats:
    """(N,) the confidence of the worst wrong decision."""
    chosen, probabilities = rows.predicted.chosen, rows.predicted.probabilities
    sure = np.where(chosen, probabilities, 1 - probabilities)
    worst: Floats = np.where(chosen != rows.truth, sure, 0.0).max(axis=1, initial=0.0)
    return worst


def _row_score(truth: Any, predicted: Any) -> Floats:
    """(N,) the share of labels that are right."""
    return np.asarray((np.asarray(truth) == predicted.chosen).mean(axis=1))


def _sides(example: Example, prediction: Prediction, task: Task) -> tuple[str, str]:
    names = example.target.names if isinstance(example.target, LabelSet) else ()
    return ", ".join(names) or NOTHING, ", ".join(prediction.value_as(tuple)) or NOTHING


def _class_rows(rows: ScoredRows) -> list[dict[str, Any]]:
    limits = next(one.limits for one in _own([rows.task]))
    return label_report(rows.truth, rows.predicted, rows.labels, limits)


def _outcomes(rows: ScoredRows) -> Outcomes:
    return rows.predicted.probabilities.reshape(-1), rows.truth.reshape(-1), "labels of rows"


KIND = TaskKind(
    name="multilabel",
    title="multi-label classification",
    target="labels",
    metric=MULTILABEL,
    from_data=multilabel_from,
    from_json=lambda values: stored_fields(Multilabel, values, "labels", "thresholds"),
    from_labels=lambda labels: Multilabel(labels=labels),
    head=PublishedHead(problem="multi_label_classification"),
    loss_selectable=True,
    divergence=_divergence,
    majority=majority.multilabel,
    words=words.multilabel_words,
    joint_task=_joint_task,
    joint_logits=_joint_logits,
    right=_right,
    error_weight=_error_weight,
    weight_is_confidence=True,
    row_score=_row_score,
    sides=_sides,
    class_rows=_class_rows,
    outcomes=_outcomes,
    columns=("prediction", "probabilities", "tokens_cut"),
    figures=("f1_micro", "f1_macro", "subset_accuracy"),
    main_title="micro F1",
    majority_title="most frequent labels",
)
