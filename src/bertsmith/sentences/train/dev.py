"""Figures of dev rows by a model in training, which choose the best weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from bertsmith.errors import ConfigError
from bertsmith.labeled.pairs.pairs import SentenceData, positive_label
from bertsmith.sentences.compare import Vectors
from bertsmith.sentences.evaluate import MEASURES, Encode, SentenceScores, evaluate_rows
from bertsmith.sentences.train.encoding import vectors_of
from bertsmith.sentences.train.model import SentenceModel
from bertsmith.sentences.train.objectives import Matryoshka, Softmax
from bertsmith.text.encoding import Ints
from bertsmith.training.execution.execution import Execution


def dev_scores(
    dev: SentenceData,
    model: SentenceModel,
    ids: Mapping[str, Ints],
    execution: Execution,
    *,
    classes: Sequence[str] = (),
    positive: str | None = None,
) -> SentenceScores:
    """The figures of dev rows, without an interval; `ids` are the tokens of each text.

    Where no label means "the same", the classifier of the softmax objective is scored.
    """

    def encode(texts: Sequence[str]) -> Vectors:
        return vectors_of(
            model,
            [ids[text] for text in texts],
            device=execution.device,
            precision=execution.precision.context,
        )

    if dev.kind == "labels" and positive is None and positive_label(dev) is None and classes:
        return _accuracy(dev, model, encode, classes)
    return evaluate_rows(
        dev, encode, similarity=model.settings.similarity, positive=positive, samples=0
    )


def _accuracy(
    dev: SentenceData, model: SentenceModel, encode: Encode, classes: Sequence[str]
) -> SentenceScores:
    """The accuracy of the classifier."""
    objective = model.objective
    if isinstance(objective, Matryoshka):
        objective = objective.inner[objective.dims.index(model.width)]  # type: ignore[assignment]
    if not isinstance(objective, Softmax):
        raise ConfigError(
            f"{dev.source}: which of the labels {', '.join(dev.labels[:8])} means that two texts "
            "say the same? Set data.positive"
        )
    strange = sorted(set(dev.labels) - set(classes))
    if strange:
        raise ConfigError(f"{dev.source}: no training row has the label {strange[0]!r}")
    number = np.array([list(classes).index(name) for name in dev.labels])
    wanted = number[np.asarray(dev.targets, dtype=np.int64)]
    first, second = (torch.from_numpy(encode([row[n] for row in dev.rows])) for n in (0, 1))
    weight = objective.classifier.weight
    with torch.no_grad():
        logits = objective.logits(first.to(weight.device), second.to(weight.device))
    right = logits.argmax(dim=1).cpu().numpy() == wanted
    return SentenceScores(
        source=dev.source,
        measure=MEASURES[dev.kind],
        rows=len(dev),
        figures={"accuracy": float(right.mean())},
    )
