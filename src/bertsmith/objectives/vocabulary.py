"""Predicting tokens: hidden rows to a loss over the vocabulary."""

from __future__ import annotations

from torch import Tensor

from bertsmith.errors import unknown
from bertsmith.models.build import Model
from bertsmith.nn.heads import MaskedLMHead
from bertsmith.nn.loss import LossSum
from bertsmith.nn.vocabulary_loss import vocabulary_loss
from bertsmith.objectives.batch import Score


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
