"""Masked language model: predict the masked tokens (Devlin et al. 2018, arXiv:1810.04805)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.models.build import Model
from bertsmith.nn.loss import LossSum, Score
from bertsmith.nn.vocabulary_loss import vocabulary_loss
from bertsmith.objectives.batch import Targets
from bertsmith.objectives.masking.masking import Masked
from bertsmith.objectives.objective import Objective


class MaskedLMObjective(Objective):
    """Predict every masked token from its own row."""

    name: ClassVar[str] = "mlm"
    head: ClassVar[str | None] = "masked_lm"

    def targets(self, rows: RowsBatch, masked: Masked) -> Targets:
        """Every masked row; its target is the token that stood there.

        `uniform` is a random number for each, for programs that sample a prediction.
        """
        at = np.flatnonzero(masked.hidden)
        return Targets(
            at=torch.from_numpy(at),
            of=torch.from_numpy(rows.ids[at].astype(np.int64)),
            more={"uniform": torch.from_numpy(rows.uniforms("sample", at))},
        )

    def loss(
        self, model: Model, own_head: nn.Module | None, hidden: Tensor, targets: Targets
    ) -> tuple[LossSum, Score]:
        """(rows, D) -> the loss over the vocabulary."""
        return token_loss(model, hidden[targets.at], targets.of)


def token_loss(
    model: Model, hidden: Tensor, targets: Tensor, *, smoothing: float = 0.0
) -> tuple[LossSum, Score]:
    """The loss of tokens (P,) that the model's vocabulary head predicts from rows (P, D)."""
    head = model.vocabulary_head
    weight = model.encoder.embeddings.tokens.weight
    loss, correct = vocabulary_loss(
        head.project(hidden), weight, head.bias, targets, smoothing=smoothing
    )
    return loss, Score(correct, targets.numel())
