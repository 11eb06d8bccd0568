"""Which of several continuations or answers fits a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import ChoiceIndex, Example, shown_target
from bertsmith.metrics import CHOICES
from bertsmith.metrics.baselines import majority, words
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.classify import log_mean, softmax
from bertsmith.tasks.excerpts import shortened
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.tasks.losses import group_cross_entropy
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import ClassPairs, Logits, ScoredRows, Task, TaskKind, WholeText
from bertsmith.text.encoding import FieldEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(WholeText):
    """Multiple choice: each choice is a passage with the context; one logit scores it.

    Examples may have different numbers of choices, K. Logits are one per passage, (B, 1), those of
    an example one after another.
    """

    labels: tuple[str, ...] = ()

    @property
    def kind(self) -> TaskKind:
        """Multiple choice."""
        return KIND

    def features(
        self, examples: Sequence[Example], tokenizer: FieldEncoder, lengths: LengthSettings
    ) -> list[Feature]:
        """K passages (context, choice) per example, each with the number of the right one."""
        if lengths.stride is not None:
            raise ConfigError(
                "choose reads each choice in one passage, after its context; leave length.stride "
                "out; length.max_length and length.keep set what is truncated"
            )
        pairs = [pair for example in examples for pair in _pairs(example)]
        owners = [number for number, example in enumerate(examples) for _ in example.texts[1:]]
        targets = self.targets(examples)
        return [
            Feature(encoding=parts[0], example=number, target=targets[number])
            for number, parts in zip(owners, encodings(pairs, tokenizer, lengths), strict=True)
        ]

    def loss(self, logits: Tensor, batch: TaskBatch) -> LossSum:
        """(B, 1) -> LossSum over examples, each a softmax over its own choices."""
        sizes = batch.owners.bincount(minlength=batch.examples).tolist()
        total = group_cross_entropy(logits.squeeze(1), sizes, batch.wanted)
        return LossSum(total, batch.examples)

    def decode(
        self, logits: Sequence[Logits], features: Sequence[Feature], examples: Sequence[Example]
    ) -> list[Prediction]:
        """The choice with the highest score; one entry per example, (K, 1)."""
        predictions = []
        cuts = tokens_cut(features, len(examples))
        for scores, example, cut in zip(logits, examples, cuts, strict=True):
            if scores.size != len(example.texts) - 1:
                raise TextError(
                    f"{example.place}: {len(example.texts) - 1} choices and "
                    f"{scores.size} scores; decode takes the rows of all passages of an example"
                )
            odds = softmax(scores.reshape(-1))
            best = int(scores.argmax())  # of the scores: odds may round to the same
            predictions.append(
                Prediction(
                    value=best,
                    probabilities={
                        str(place): chance for place, chance in enumerate(odds.tolist())
                    },
                    confidence=float(odds[best]),
                    cut=cut,
                )
            )
        return predictions

    def truth(self, examples: Sequence[Example]) -> NDArray[np.int64]:
        """(N,) numbers of choices."""
        return np.array([_index(example) for example in examples])

    def predicted(self, predictions: Sequence[Prediction]) -> NDArray[np.int64]:
        """(N,) numbers of choices."""
        return np.array([one.value_as(int) for one in predictions])

    def to_json(self) -> Mapping[str, Any]:
        """Nothing but its name."""
        return {}


def _pairs(example: Example) -> list[tuple[str, str]]:
    context, *choices = example.texts
    if not choices:
        raise TextError(
            f"{example.place}: a context without choices; give the context first, then every choice"
        )
    return [(context, choice) for choice in choices]


def _index(example: Example) -> int:
    target, choices = example.target, len(example.texts) - 1
    if not isinstance(target, ChoiceIndex) or not 0 <= target.index < choices:
        raise TextError(
            f"{example.place}: {shown_target(target)} is none of the {choices} choices, "
            "which count from 0"
        )
    return target.index


def _joint_logits(
    tasks: Sequence[Task], entry: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    return log_mean([softmax(one.reshape(-1)).reshape(one.shape) for one in entry])


def _sides(example: Example, prediction: Prediction, task: Task) -> tuple[str, str]:
    first, second = (
        f"{index + 1}: {shortened(example.texts[index + 1], 120)}"
        for index in (_index(example), prediction.value_as(int))
    )
    return first, second


def _class_pairs(rows: ScoredRows, by_type: bool) -> ClassPairs:
    """Classes are the places of choices."""
    most = max(len(example.texts) - 1 for example in rows.examples)
    return [f"choice {place + 1}" for place in range(most)], rows.truth, rows.predicted


def _check_texts(given: int, trained: int) -> None:
    if given < 3:
        raise ConfigError("the model chooses: give each choice with --pair TEXT, two or more")


KIND = TaskKind(
    name="choose",
    enriched=False,
    title="multiple choice",
    target="choice",
    metric=CHOICES,
    from_data=lambda examples, options: Choose(),
    from_json=lambda values: Choose(),
    pools_passages=False,
    windows="never",
    majority=majority.choose,
    words=words.choose_words,
    joint_logits=_joint_logits,
    sides=_sides,
    class_pairs=_class_pairs,
    scores_classes=True,
    pipeline="multiple-choice",
    sample_call='[("a context", "a choice", "another choice")]',
    check_texts=_check_texts,
)
