"""Losses of fine-tuning, as sums and counts: smoothing, class weights, focal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from bertsmith.config import Settings
from bertsmith.errors import ConfigError
from bertsmith.nn.layout import real
from bertsmith.nn.loss import LossSum

Weights = Literal["none", "balanced"] | Mapping[str, Annotated[float, Field(gt=0)]]


class CrossEntropySettings(Settings):
    """Cross entropy, for one class or, with several classes at once, for each of them.

    `weights` = balanced gives every class the same total weight (total / (C x count)).
    """

    kind: Literal["cross_entropy"] = "cross_entropy"
    smoothing: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weights: Weights = "none"


class FocalSettings(Settings):
    """Focal loss: less weight on easy examples (Lin et al. 2017, arXiv:1708.02002)."""

    kind: Literal["focal"] = "focal"
    gamma: Annotated[float, Field(gt=0)] = 2.0
    weights: Weights = "none"


LossSettings = Annotated[CrossEntropySettings | FocalSettings, Field(discriminator="kind")]


def class_loss(
    logits: Tensor, targets: Tensor, settings: LossSettings, weights: Tensor | None
) -> LossSum:
    """Single-label: (E, C), (E,) -> LossSum."""
    logits = logits.float()
    if isinstance(settings, FocalSettings):
        logs = logits.log_softmax(dim=1).gather(1, targets[:, None]).squeeze(1)
        each = -((1 - logs.exp()) ** settings.gamma) * logs
        each = each if weights is None else each * weights[targets]
        return LossSum(each.sum(), targets.numel())
    total = F.cross_entropy(
        logits,
        targets,
        weight=weights,
        reduction="sum",
        label_smoothing=settings.smoothing,
    )
    return LossSum(total, targets.numel())


def labels_loss(
    logits: Tensor, targets: Tensor, settings: LossSettings, weights: Tensor | None
) -> LossSum:
    """Multi-label: (E, C), (E, C) of 0 and 1 -> LossSum over E rows."""
    logits, targets = logits.float(), targets.float()
    if isinstance(settings, FocalSettings):
        each = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        each = each * (1 - (-each).exp()) ** settings.gamma  # exp(-loss): the chance of being right
    else:
        smooth = settings.smoothing
        aims = targets * (1 - smooth) + smooth / 2
        each = F.binary_cross_entropy_with_logits(logits, aims, reduction="none")
    each = each if weights is None else each * weights
    return LossSum(each.sum() / logits.shape[1], targets.shape[0])


def class_weights(
    settings: LossSettings, labels: Sequence[str], counts: Sequence[int]
) -> tuple[float, ...] | None:
    """The weight of each class, None if all count 1; `counts` are those of the training rows."""
    if settings.weights == "none":
        return None
    if settings.weights == "balanced":
        total = sum(counts)
        return tuple(total / (len(counts) * max(count, 1)) for count in counts)
    odd = sorted(set(settings.weights) - set(labels))
    if odd:
        raise ConfigError(
            f"loss.weights names {odd[0]!r}, which is no label; labels: {', '.join(labels[:20])}"
        )
    return tuple(settings.weights.get(label, 1.0) for label in labels)


def weights_tensor(weights: tuple[float, ...] | None, like: Tensor) -> Tensor | None:
    """Class weights where the logits are."""
    return None if weights is None else torch.tensor(weights, device=like.device)


def group_cross_entropy(scores: Tensor, sizes: Sequence[int], targets: Tensor) -> Tensor:
    """One right row in each group: (sum of sizes,), B sizes, (B,) places in the group -> sum ()."""
    held = real(sizes, device=scores.device)  # (B, M)
    # A rectangle, not scattered sums: those add in any order on a GPU, and a run must repeat.
    empty = torch.full(held.shape, -torch.inf, device=scores.device)
    return F.cross_entropy(empty.masked_scatter(held, scores.float()), targets, reduction="sum")
