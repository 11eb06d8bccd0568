"""Interfaces of the training loop: workload (batches, losses) and the gradients of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bertsmith.nn.loss import LossSum, Score
from bertsmith.training.execution.execution import Execution

Losses = tuple[Mapping[str, LossSum], Mapping[str, Score]]


class Workload(Protocol):
    """What is trained on; the loop knows nothing else of texts, masks and objectives.

    Micro-batches are opaque to the loop, but for `.to(device)`. `micro_batches` runs in another
    thread and must be a pure function of its arguments: it must not touch torch's global generator.
    """

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each named part in the loss."""

    def micro_batches(self, step: int, share: float) -> Sequence[Any]:
        """This rank's micro-batches of a step, after a `share` (0 to 1) of training."""

    def counts(self, batch: Any) -> Mapping[str, int]:
        """The predictions of each part, known before the forward pass."""

    def loss(self, model: nn.Module, batch: Any) -> Losses:
        """The loss of each part as sum and count, and how many predictions were right."""

    def backward(self, batches: Sequence[Any], step: StepGradients) -> None:
        """Accumulate the gradients of a step, here of one micro-batch after another.

        A loss over the whole batch (in-batch contrast) overrides this: its forward passes, then
        one `step.backward`, then `step.record`. With sharded ranks it runs `step.idle` passes more.
        """
        for batch in batches:
            parts, scores = step.losses(batch)
            step.backward(parts)
            step.record(parts, scores)
        for _ in range(step.idle):
            step.backward(step.losses(batches[-1])[0], scale=0.0)

    def tokens(self, batch: Any) -> int:
        """The real tokens of a micro-batch; padding does not count."""

    def examples(self, step: int) -> str:
        """Which examples a step reads, in words, for a diagnosis."""

    def held_out(self) -> Iterable[Any]:
        """This rank's share of the held-out micro-batches."""


class StepGradients:
    """The model of a step, and how its losses become gradients.

    `totals` are the counts of each part over all micro-batches and ranks, `idle` how many passes
    without effect this rank must run besides its own, since passes of sharded ranks are collective.
    """

    def __init__(
        self,
        workload: Workload,
        model: nn.Module,
        *,
        totals: Mapping[str, float],
        idle: int,
        execution: Execution,
    ) -> None:
        self.model = model
        self.execution = execution
        self.idle = idle
        self.sums: list[dict[str, Tensor]] = []
        self.counts: dict[str, int] = {}
        self.scores: dict[str, float | Tensor] = {}
        self._workload = workload
        self._totals = totals

    def losses(self, batch: Any) -> Losses:
        """The forward pass of a micro-batch, on the device and in the number format of the run."""
        with self.execution.precision.context():
            return self._workload.loss(self.model, batch.to(self.execution.device))

    def backward(
        self,
        parts: Mapping[str, LossSum],
        *,
        scale: float = 1.0,
        also: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        """Gradients of weighted parts, each divided by its count over the whole batch.

        `also` is a tensor of the same graph whose gradient is known already.
        """
        weights = self._workload.weights
        terms = [
            scale * (weights[name] / self._totals[name]) * part.sum
            for name, part in parts.items()
            if part.count and part.sum.requires_grad
        ]
        total = [torch.stack([term.float() for term in terms]).sum()] if terms else []
        given = [] if also is None else [also]
        if total or given:
            torch.autograd.backward(
                [*total, *(tensor for tensor, _ in given)],
                [*(None for _ in total), *(gradient for _, gradient in given)],
            )

    def record(
        self, parts: Mapping[str, LossSum], scores: Mapping[str, Score] | None = None
    ) -> None:
        """Sums, counts and right predictions for the log."""
        self.sums.append({name: part.sum.detach() for name, part in parts.items()})
        for name, part in parts.items():
            self.counts[name] = self.counts.get(name, 0) + part.count
        for name, score in (scores or {}).items():
            self.scores[f"correct:{name}"] = self.scores.get(f"correct:{name}", 0.0) + score.correct
            self.scores[f"scored:{name}"] = self.scores.get(f"scored:{name}", 0.0) + score.count
