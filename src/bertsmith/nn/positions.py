"""Positions that live inside attention: fixed sinusoids of the clipped distance between tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoids(
    clip: int, width: int, *, device: torch.device | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """NEZHA's table (Wei et al. 2019, arXiv:1909.00204): a row a distance -> (2 clip + 1, K).

    Row r stands for the distance r - clip of key minus query. Even columns hold
    sin(r / 10000^(j / K)), odd ones the cosine of the same angle.
    """
    places = torch.arange(2 * clip + 1, device=device, dtype=torch.float32)
    even = torch.arange(0, width, 2, device=device, dtype=torch.float32)
    angles = places[:, None] * torch.exp(even * (-math.log(10_000.0) / width))  # (2 clip + 1, K/2)
    table = torch.empty(2 * clip + 1, width, device=device)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()[:, : width // 2]
    return table.to(dtype or torch.float32)


def clipped(keys: Tensor, queries: Tensor, clip: int) -> Tensor:
    """The table row of each pair of places: (b, m), (b, l) -> (b, l, m)."""
    return (keys[:, None, :] - queries[:, :, None]).clamp(-clip, clip) + clip
