"""Losses as sums and counts: only the training loop divides, so every split of a batch is exact."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, slots=True)
class LossSum:
    """The sum of a loss over `count` predictions."""

    sum: Tensor
    count: int

    def __add__(self, other: LossSum) -> LossSum:
        return LossSum(self.sum + other.sum, self.count + other.count)


@dataclass(frozen=True, slots=True)
class Score:
    """How many of `count` predictions were right."""

    correct: int | Tensor
    count: int


def cross_entropy(logits: Tensor, targets: Tensor) -> LossSum:
    """One class a row: (P, C), (P,) -> LossSum."""
    return LossSum(F.cross_entropy(logits.float(), targets, reduction="sum"), targets.numel())


def binary_cross_entropy(logits: Tensor, targets: Tensor) -> LossSum:
    """Yes or no for every number: (...), (...) of the same shape -> LossSum."""
    total = F.binary_cross_entropy_with_logits(
        logits.float(), targets.to(torch.float32), reduction="sum"
    )
    return LossSum(total, targets.numel())


def squared_error(predicted: Tensor, targets: Tensor) -> LossSum:
    """Squared difference of every number: (...), (...) of the same shape -> LossSum."""
    total = F.mse_loss(predicted.float(), targets.to(torch.float32), reduction="sum")
    return LossSum(total, targets.numel())
