"""Masked language model: predict the masked tokens (Devlin et al. 2018, arXiv:1810.04805)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import unknown
from bertsmith.models.build import Model
from bertsmith.nn.heads import MaskedLMHead
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
        return token_loss(
            masked_lm_rows(model, hidden[targets.at]),
            model.encoder.embeddings.tokens.weight,
            masked_lm_head(model).bias,
            targets.of,
        )


def token_loss(
    rows: Tensor, weight: Tensor, bias: Tensor, targets: Tensor
) -> tuple[LossSum, Score]:
    """(P, E) rows, (V, E) embedding, (V,) bias, (P,) targets -> loss and right predictions."""
    loss, correct = vocabulary_loss(rows, weight, bias, targets)
    return loss, Score(correct, targets.numel())


def masked_lm_rows(model: Model, hidden: Tensor) -> Tensor:
    """What the masked-LM head multiplies with the embedding: (P, D) -> (P, E)."""
    head = masked_lm_head(model)
    rows: Tensor = head.norm(head.activation(head.dense(hidden)))
    return rows


def masked_lm_head(model: Model) -> MaskedLMHead:
    """The masked-LM head of a model that must have one."""
    head = model.heads["masked_lm"] if "masked_lm" in model.heads else None  # noqa: SIM401
    if not isinstance(head, MaskedLMHead):
        raise unknown("head of this model", "masked_lm", model.heads)
    return head
