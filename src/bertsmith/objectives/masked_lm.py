"""Masked language model: say the tokens that were hidden (Devlin et al. 2018, arXiv:1810.04805)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum
from bertsmith.objectives.batch import Asked, Score
from bertsmith.objectives.masking.masking import Masked
from bertsmith.objectives.vocabulary import masked_lm_head, masked_lm_rows, token_loss


@dataclass(frozen=True, slots=True)
class MaskedLM:
    """Predict every hidden token from its own row."""

    name: ClassVar[str] = "mlm"
    weight: ClassVar[float] = 1.0
    head: ClassVar[str] = "masked_lm"
    pair: ClassVar[None] = None

    def own_head(self, model: Model, random: torch.Generator | None) -> nn.Module | None:
        """None: published models have this head."""
        return None

    def ask(self, rows: RowsBatch, masked: Masked) -> Asked:
        """Every hidden row; its target is the token that stood there.

        `chance` is a random number for each, should somebody want to sample an answer.
        """
        at = np.flatnonzero(masked.hidden)
        return Asked(
            at=torch.from_numpy(at),
            targets=torch.from_numpy(rows.ids[at].astype(np.int64)),
            more={"chance": torch.from_numpy(rows.uniforms("sample", at))},
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, asked: Asked
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over the vocabulary."""
        return token_loss(
            masked_lm_rows(model, hidden[asked.at]),
            model.encoder.embeddings.tokens.weight,
            masked_lm_head(model).bias,
            asked.targets,
        )
