"""Which of several continuations or answers fits a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import ConfigError, TextError
from bertsmith.labeled.example import Choice, Example
from bertsmith.nn.loss import LossSum
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.classify import softmax
from bertsmith.tasks.feature import Feature, tokens_cut
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.tasks.losses import group_cross_entropy
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import Logits
from bertsmith.tasks.whole_text import WholeText
from bertsmith.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(WholeText):
    """Multiple choice: each choice is a passage with the context; one number says how it fits.

    Examples may have different numbers of choices, K. The head's numbers stay one a passage,
    (B, 1), those of an example side by side.
    """

    name: Literal["choose"] = "choose"
    labels: tuple[str, ...] = ()

    @property
    def outputs(self) -> int:
        """How well a choice fits."""
        return 1

    def features(
        self, examples: Sequence[Example], tokenizer: Tokenizer, lengths: LengthSettings
    ) -> list[Feature]:
        """K passages (context, choice) an example, each with the number of the right one."""
        if lengths.stride is not None:
            raise ConfigError(
                "choose reads each choice in one passage, after its context; leave length.stride "
                "out; length.max_length and length.keep say what is read"
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
        """The choice that fits best: one entry an example, (K, 1), the rows of its passages."""
        found = []
        cuts = tokens_cut(features, len(examples))
        for scores, example, cut in zip(logits, examples, cuts, strict=True):
            if scores.size != len(example.texts) - 1:
                raise TextError(
                    f"{example.place}: {len(example.texts) - 1} choices and "
                    f"{scores.size} scores; decode takes the rows of all passages of an example"
                )
            odds = softmax(scores.reshape(-1))
            best = int(scores.argmax())  # of the scores: odds may round to the same
            found.append(
                Prediction(
                    value=best,
                    probabilities={
                        str(place): chance for place, chance in enumerate(odds.tolist())
                    },
                    confidence=float(odds[best]),
                    cut=cut,
                )
            )
        return found

    def truth(self, examples: Sequence[Example]) -> NDArray[np.int64]:
        """(N,) numbers of choices."""
        return np.array([_index(example) for example in examples])

    def said(self, predictions: Sequence[Prediction]) -> NDArray[np.int64]:
        """(N,) numbers of choices."""
        return np.array([_chosen(one) for one in predictions])

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
    if not isinstance(target, Choice) or not 0 <= target.index < choices:
        raise TextError(
            f"{example.place}: {target!r} is none of the {choices} choices, which count from 0"
        )
    return target.index


def _chosen(prediction: Prediction) -> int:
    if not isinstance(prediction.value, int):
        raise TypeError(f"not a predicted choice: {prediction.value!r}")
    return prediction.value
