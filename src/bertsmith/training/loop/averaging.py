"""The mean of the weights over the last part of training, which smooths out its noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Settings
from bertsmith.training.optimizers.optimizers import sharded_like


class AveragingSettings(Settings):
    """Which last share of training is averaged, and every how many steps."""

    tail: Annotated[float, Field(ge=0, le=1)] = 0.2  # 0: no averaging
    every: Annotated[int, Field(gt=0)] = 10


class WeightCopy:
    """A copy of the weights that training changes, by name."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._copy: dict[str, Tensor] = {}

    @torch.no_grad()
    def put(self, values: Mapping[str, Tensor]) -> None:
        """Put these values into the model."""
        weights = self._weights()
        for name, value in values.items():
            weights[name].copy_(value)

    def state(self) -> dict[str, Tensor]:
        """The copied weights by name."""
        return dict(self._copy)

    def take_over(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace the copy by what `state` gave."""
        weights = self._weights()
        self._copy = {name: sharded_like(one, weights[name]) for name, one in tensors.items()}

    def _weights(self) -> dict[str, Tensor]:
        return {n: p for n, p in self._model.named_parameters() if p.requires_grad}


class TailAverage(WeightCopy):
    """A running mean of weights, in fp32, started once the tail begins."""

    def __init__(self, model: nn.Module, settings: AveragingSettings) -> None:
        super().__init__(model)
        self._settings = settings
        self.count = 0

    def update(self, step: int, share: float) -> None:
        """Take in the weights after `step` steps, if it is time."""
        settings = self._settings
        if not settings.tail or share < 1.0 - settings.tail or step % settings.every:
            return
        weights = self._weights()
        self.count += 1
        if self.count == 1:
            self._copy = {name: w.detach().float().clone() for name, w in weights.items()}
            return
        torch._foreach_lerp_(
            list(self._copy.values()),
            [weights[name].detach().float() for name in self._copy],
            1.0 / self.count,
        )

    def apply(self) -> dict[str, Tensor]:
        """Put the mean into the model; what was there, to give back to `put`."""
        weights = self._weights()
        before = {name: weights[name].detach().clone() for name in self._copy}
        self.put(self._copy)
        return before

    def load(self, means: Mapping[str, Tensor], count: int) -> None:
        """Take over the means of so many weights."""
        self.take_over(means)
        self.count = count
