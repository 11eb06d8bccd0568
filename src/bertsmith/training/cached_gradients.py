"""Cached gradients: a loss over a batch of any size in the memory of one chunk, exactly.

Every chunk is encoded without gradients; the loss of all vectors gives the gradient of each; every
chunk is encoded once more, with the same dropout masks, and its gradients go down from there (Gao
et al. 2021, arXiv:2101.06983). On several ranks each one has the vectors of all and takes the
gradients of its own, whose sum over ranks is that of one rank: no collective call goes backward.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bertsmith.nn.loss import LossSum
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.loop.workload import StepGradients


class RandomState:
    """The state of torch's generators, of which dropout masks are drawn."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._host = torch.get_rng_state()
        self._own = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def restore(self) -> None:
        """Draw the same numbers again."""
        torch.set_rng_state(self._host)
        if self._own is not None:
            torch.cuda.set_rng_state(self._own, self._device)


def vector_gradients(
    own: Tensor,
    start: int,
    losses: Callable[[Tensor], Tensor],
    step: StepGradients,
    *,
    ranks: Ranks,
    part: str,
) -> Tensor:
    """The gradient of the loss of all ranks' rows for each own vector: (n, ..., W) -> the same.

    `losses` gives the loss of each of the rows of all ranks, (N, ..., W) -> (N,); the own ones
    begin at `start`.
    """
    every = ranks.gather_rows(own)
    end = start + len(own)
    leaf = own.clone().requires_grad_()
    joined = torch.cat([every[:start], leaf, every[end:]])
    found = losses(joined)
    step.backward({part: LossSum(found.sum(), len(joined))})
    step.record({part: LossSum(found[start:end].detach().sum(), len(own))})
    return torch.zeros_like(own) if leaf.grad is None else leaf.grad
