"""What the loop asks of others: work that makes batches and losses, ranks that share it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bertsmith.nn.loss import LossSum


class Scored(Protocol):
    """How many of `count` predictions were right."""

    @property
    def correct(self) -> int | Tensor:
        """Right predictions."""

    @property
    def count(self) -> int:
        """All predictions."""


class Work(Protocol):
    """What is trained on; the loop knows nothing else of texts, masks and objectives.

    Micro-batches are opaque to the loop, but for `.to(device)`. `micro_batches` runs in another
    thread and must be a pure function of its arguments: it must not touch torch's global generator.
    """

    @property
    def weights(self) -> Mapping[str, float]:
        """The weight of each named part in the loss."""

    def micro_batches(self, step: int, share: float) -> Sequence[Any]:
        """This rank's micro-batches of a step; `share` (0 to 1) of training lies behind it."""

    def counts(self, batch: Any) -> Mapping[str, int]:
        """The predictions of each part, known before the forward pass."""

    def loss(
        self, model: nn.Module, batch: Any
    ) -> tuple[Mapping[str, LossSum], Mapping[str, Scored]]:
        """The loss of each part as sum and count, and how many predictions were right."""

    def tokens(self, batch: Any) -> int:
        """The real tokens of a micro-batch; padding does not count."""

    def examples(self, step: int) -> str:
        """Which examples a step reads, in words, for a diagnosis."""

    def held_out(self) -> Iterable[Any]:
        """This rank's share of the held-out micro-batches."""


class Ranks(Protocol):
    """The processes that train together; every method but the properties is called by all."""

    @property
    def world(self) -> int:
        """How many processes there are."""

    @property
    def rank(self) -> int:
        """Which of them this is."""

    @property
    def is_first(self) -> bool:
        """Whether this one writes files."""

    def sum_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Each number added over all ranks in float64, hence exact for counts."""

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace each gradient by its sum (not its mean) over all ranks."""

    def passes(self, own: int) -> int:
        """How many micro-batches this rank must run in a step, given how many it has."""

    def whole(self, model: nn.Module) -> AbstractContextManager[None]:
        """While entered, passes without gradients need no other rank."""

    def watched(self) -> AbstractContextManager[None]:
        """While entered, a meeting that fails anywhere says which rank was not there."""

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""

    def barrier(self) -> None:
        """Wait for all."""


class SingleRank:
    """One process on its own."""

    world = 1
    rank = 0
    is_first = True

    def sum_counts(self, counts: Mapping[str, float]) -> dict[str, float]:
        """The numbers as they are."""
        return dict(counts)

    def sum_gradients(self, model: nn.Module) -> None:
        """Nothing to add."""

    def passes(self, own: int) -> int:
        """As many as there are."""
        return own

    def whole(self, model: nn.Module) -> AbstractContextManager[None]:
        """Nothing to gather."""
        return nullcontext()

    def watched(self) -> AbstractContextManager[None]:
        """Nobody can be missing."""
        return nullcontext()

    def any(self, flag: bool) -> bool:
        """The flag as it is."""
        return flag

    def barrier(self) -> None:
        """Nobody to wait for."""


def to_device(batch: Any, device: torch.device) -> Any:
    """A micro-batch where the model is."""
    return batch.to(device)
