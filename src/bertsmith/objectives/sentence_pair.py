"""Classification of sentence pairs: does B follow A (BERT), are they in order (ALBERT)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from bertsmith.corpus.plans import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum, Score, cross_entropy
from bertsmith.objectives.batch import Targets
from bertsmith.objectives.masking.masking import Masked
from bertsmith.objectives.objective import Objective


class SentencePair(Objective):
    """Two classes from the first row of a text: 0 as written, 1 corrupted."""

    def targets(self, rows: RowsBatch, masked: Masked) -> Targets:
        """The first row of each text, and the label of its pair."""
        if rows.pair_labels is None:
            raise ConfigError(f'{self.name} needs inputs with pair = "{self.pair}"')
        return Targets(
            at=torch.from_numpy(rows.starts), of=torch.from_numpy(rows.pair_labels.copy())
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, targets: Targets
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over two classes."""
        logits = model.logits(str(self.head), hidden[targets.at])
        correct = (logits.detach().argmax(-1) == targets.of).sum()
        return cross_entropy(logits, targets.of), Score(correct, targets.count)


class NextSentence(SentencePair):
    """Devlin et al. 2018: 0 when B followed A, as in published checkpoints."""

    name: ClassVar[str] = "nsp"
    head: ClassVar[str | None] = "next_sentence"
    pair: ClassVar[PairTask | None] = "next_sentence"


class SentenceOrder(SentencePair):
    """Lan et al. 2019 (arXiv:1909.11942): 0 in order, 1 swapped."""

    name: ClassVar[str] = "sop"
    head: ClassVar[str | None] = "sentence_order"
    pair: ClassVar[PairTask | None] = "sentence_order"
