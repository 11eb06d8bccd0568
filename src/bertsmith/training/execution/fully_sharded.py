"""Weights, gradients and optimizer state split over the ranks (FSDP2), for models too large."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from bertsmith.training.execution.ranks import DataParallel

log = logging.getLogger(__name__)


class FullySharded(DataParallel):
    """Each rank keeps a slice of every weight and gathers a block's weights when they are used.

    Every forward and backward pass is a collective call, so all ranks must run equally many:
    `passes` is how many, and `whole` gathers everything once for passes without gradients.
    """

    def __init__(
        self, *, device: torch.device, timeout: float, sharded: Sequence[type[nn.Module]]
    ) -> None:
        super().__init__(device=device, timeout=timeout)
        self._sharded = tuple(sharded)

    def prepare(self, model: nn.Module) -> None:
        """Give every rank the first one's weights, then keep this rank's slices of them."""
        super().prepare(model)
        mesh = init_device_mesh(self._device.type, (self.world,))
        modules = [module for module in model.modules() if isinstance(module, self._sharded)]
        inner = {id(one) for module in modules for one in module.modules() if one is not module}
        for module in modules:
            if module is not model and id(module) not in inner:  # a decoder block calls its parts
                fully_shard(module, mesh=mesh)
        fully_shard(model, mesh=mesh)
        for part in _parts(model):
            part.set_force_sum_reduction_for_comms(True)  # gloo knows no other
            part.set_gradient_divide_factor(1.0)  # the loop has divided already

    def sum_gradients(self, model: nn.Module) -> None:
        """Nothing is left to do: each backward pass has added its sums to this rank's slices."""

    def passes(self, own: int) -> int:
        """The most micro-batches of any rank: one with fewer repeats its last, times zero."""
        return self.most(own)

    @contextmanager
    def whole(self, model: nn.Module) -> Iterator[None]:
        """Gather all weights and keep them, so that passes without gradients need no one."""
        parts = _parts(model)
        for module in parts:
            module.set_reshard_after_forward(False, recurse=False)
            module.unshard()
        try:
            yield
        finally:
            for module in parts:
                module.reshard()
                # Blocks give their memory back; the root's backward pass follows at once.
                root = isinstance(model, FSDPModule) and module == model
                module.set_reshard_after_forward(not root, recurse=False)


def _parts(model: nn.Module) -> list[FSDPModule]:
    return [module for module in model.modules() if isinstance(module, FSDPModule)]
