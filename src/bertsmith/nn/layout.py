"""Who stands where and sees whom in a batch of rows: made from the batch, never from the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Layout:
    """Texts of `lengths` tokens standing one after another as T = sum(lengths) rows, no padding.

    `positions` (T,) is each row's place in its text. `visible` is None when every row sees all of
    its own text, else a boolean (B, M, M) with M = max(lengths): row l of text b may look at row m
    where `visible[b, l, m]` is True. Places beyond a text's length are ignored.
    """

    lengths: tuple[int, ...]
    positions: Tensor
    visible: Tensor | None = None

    @classmethod
    def of(
        cls,
        lengths: Sequence[int],
        *,
        visible: Tensor | None = None,
        device: torch.device | str | None = None,
    ) -> Layout:
        """The plain layout: positions count from 0 in each text.

        In numpy: batches are made in a thread of their own, and an operation of torch that works in
        parallel gives that thread OpenMP workers too. With more workers than cores all of them go
        to sleep between operations, which doubled the time of small training steps.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        starts = np.repeat(sizes.cumsum() - sizes, sizes)
        positions = torch.from_numpy(np.arange(len(starts)) - starts)
        return cls(tuple(lengths), positions.to(device or "cpu"), visible)

    @property
    def rows(self) -> int:
        """T, the number of rows."""
        return sum(self.lengths)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first row of each text, B of them."""
        return tuple(accumulate(self.lengths[:-1], initial=0)) if self.lengths else ()


def real(lengths: Sequence[int], *, device: torch.device | str | None = None) -> Tensor:
    """Which places of a (B, M) rectangle hold a token, M = max(lengths)."""
    sizes = torch.tensor(lengths, dtype=torch.long, device=device)
    places = torch.arange(max(lengths, default=0), device=device)
    return places < sizes[:, None]


def bidirectional(real: Tensor) -> Tensor:
    """Every token sees every token of its text: (B, M) -> (B, M, M)."""
    return real[:, :, None] & real[:, None, :]


def causal(real: Tensor) -> Tensor:
    """Every token sees itself and what stands before it: (B, M) -> (B, M, M)."""
    return bidirectional(real).tril()


def seq2seq(real: Tensor, target: Tensor) -> Tensor:
    """UniLM's mix (Dong et al. 2019, arXiv:1905.03197): (B, M), (B, M) -> (B, M, M).

    Tokens of the source see the whole source; tokens where `target` is True see the source and
    the target up to themselves.
    """
    source = real & ~target
    return bidirectional(real) & (source[:, None, :] | (causal(real) & target[:, :, None]))


def picture(visible: Tensor) -> list[str]:
    """One text's visibility as lines of `#` (sees) and `.`: (1, M, M) or (M, M) -> M lines."""
    square = visible.reshape(visible.shape[-2:])
    return ["".join("#" if sees else "." for sees in line) for line in square.tolist()]
