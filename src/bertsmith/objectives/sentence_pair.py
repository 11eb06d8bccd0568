"""Questions about pairs: does B follow A (BERT), do they stand in order (ALBERT)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bertsmith.corpus.plans.pairs import PairTask
from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum, cross_entropy
from bertsmith.objectives.batch import Asked, Score
from bertsmith.objectives.masking.masking import Masked


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A choice of two about the first row of a text: 0 as written, 1 made wrong on purpose."""

    name: str
    head: str
    pair: PairTask
    weight: float = 1.0

    def own_head(self, model: Model, random: torch.Generator | None) -> nn.Module | None:
        """None: published models have this head."""
        return None

    def ask(self, rows: RowsBatch, masked: Masked) -> Asked:
        """The first row of each text, and what the inputs did to its pair."""
        if rows.pair_labels is None:
            raise ConfigError(f'{self.name} needs inputs made with pair = "{self.pair}"')
        return Asked(
            at=torch.from_numpy(rows.starts), targets=torch.from_numpy(rows.pair_labels.copy())
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, asked: Asked
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over two classes."""
        logits = model.logits(self.head, hidden[asked.at])
        correct = (logits.detach().argmax(-1) == asked.targets).sum()
        return cross_entropy(logits, asked.targets), Score(correct, asked.count)


NEXT_SENTENCE = PairQuestion("nsp", "next_sentence", "next_sentence")
"""Devlin et al. 2018: 0 when B followed A, as in published checkpoints."""
SENTENCE_ORDER = PairQuestion("sop", "sentence_order", "sentence_order")
"""Lan et al. 2019 (arXiv:1909.11942): 0 in order, 1 swapped."""
