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


class TailAverage:
    """A running mean of weights, in fp32, started once the tail begins."""

    def __init__(self, model: nn.Module, settings: AveragingSettings) -> None:
        self._model = model
        self._settings = settings
        self.count = 0
        self._means: dict[str, Tensor] = {}

    def update(self, step: int, share: float) -> None:
        """Take in the weights after `step` steps, if it is time."""
        settings = self._settings
        if not settings.tail or share < 1.0 - settings.tail or step % settings.every:
            return
        weights = self._weights()
        self.count += 1
        if self.count == 1:
            self._means = {name: w.detach().float().clone() for name, w in weights.items()}
            return
        torch._foreach_lerp_(
            list(self._means.values()),
            [weights[name].detach().float() for name in self._means],
            1.0 / self.count,
        )

    def apply(self) -> dict[str, Tensor]:
        """Put the mean into the model; what was there, to give back to `restore`."""
        weights = self._weights()
        before = {name: weights[name].detach().clone() for name in self._means}
        self.restore(self._means)
        return before

    @torch.no_grad()
    def restore(self, values: Mapping[str, Tensor]) -> None:
        """Put these values into the model."""
        weights = self._weights()
        for name, value in values.items():
            weights[name].copy_(value)

    def state(self) -> dict[str, Tensor]:
        """The means by parameter name."""
        return dict(self._means)

    def load(self, means: Mapping[str, Tensor], count: int) -> None:
        """Take over what `state` gave."""
        weights = self._weights()
        self._means = {name: sharded_like(mean, weights[name]) for name, mean in means.items()}
        self.count = count

    def _weights(self) -> dict[str, nn.Parameter]:
        return {n: p for n, p in self._model.named_parameters() if p.requires_grad}
