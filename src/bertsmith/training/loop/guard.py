"""Stops a run whose numbers are no numbers any more, before the optimizer spreads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn


def finite(tensor: Tensor) -> bool:
    """Whether all values are finite; the sum decides, only its overflow needs a second look.

    Of a sharded tensor this rank's shard: ranks come here unequally often and must not meet.
    """
    tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return True
    total = tensor.sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
    return bool(torch.isfinite(total)) or bool(torch.isfinite(tensor).all())


def broken(tensors: Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]) -> list[str]:
    """The names of tensors that hold values that are not finite."""
    pairs = tensors.items() if isinstance(tensors, Mapping) else tensors
    return [name for name, tensor in pairs if not finite(tensor)]


def diagnosis(
    model: nn.Module,
    *,
    step: int,
    rate: float,
    norm: float,
    losses: Sequence[Mapping[str, float]],
    examples: str,
) -> str:
    """What broke first, in the order of cause: weights, then losses, then gradients.

    `losses` holds the sums of each micro-batch of this rank.
    """
    where = f"step {step:,}, {examples}, learning rate {rate:.3g}, gradient norm {norm:.4g}"
    weights = broken((name, p.detach()) for name, p in model.named_parameters())
    if weights:
        cause = f"the weights {_some(weights)} were not finite before this step"
    else:
        cause = _cause_in_step(model, losses)
    return f"training stopped before the optimizer's step ({where}): {cause}"


def _cause_in_step(model: nn.Module, losses: Sequence[Mapping[str, float]]) -> str:
    for number, parts in enumerate(losses):
        bad = [name for name, value in parts.items() if value - value != 0.0]
        if bad:
            return (
                f"the loss {_some(bad)} is not finite, first in micro-batch {number} of "
                f"{len(losses)}"
            )
    grads = broken((n, p.grad) for n, p in model.named_parameters() if p.grad is not None)
    if grads:
        return f"all losses are finite, but not the gradients of {_some(grads)}"
    if not losses:
        return "there was nothing to predict in the whole batch"
    return "every gradient is finite, but their norm or another rank's loss is not"


def _some(names: list[str], limit: int = 3) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
