"""Positions inside attention: what a distance between two tokens adds to their attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class PositionTerms:
    """What positions do in the attention of one group; a kind of positions overrides what it needs.

    Shapes: queries (b, H, l, K), keys (b, H, m, K), attention weights (b, H, l, m).
    """

    fused = False  # True where `rotate` is all: fused attention does the rest

    def rotate(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys as they meet."""
        return queries, keys

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor | None:
        """Added to queries times keys, before scaling: -> (b, H, l, m)."""
        return None

    def values(self, weights: Tensor) -> Tensor | None:
        """Added to the weighted values: -> (b, H, l, K)."""
        return None


# Positions of the queries (b, l) and of the keys (b, m) of a group -> its terms.
TermsOf = Callable[[Tensor, Tensor], PositionTerms]


class AttentionPositions(nn.Module):
    """Positions that all attention layers of a model share."""

    def of_batch(self, head_width: int, *, device: torch.device, dtype: torch.dtype) -> TermsOf:
        """What makes the terms of each group of a batch; tables are made here, once."""
        return lambda queries, keys: PositionTerms()


class FunctionalPositions(AttentionPositions):
    """Fixed sinusoids of the clipped distance (NEZHA, Wei et al. 2019, arXiv:1909.00204)."""

    def __init__(self, clip: int) -> None:
        super().__init__()
        self.clip = clip

    def of_batch(self, head_width: int, *, device: torch.device, dtype: torch.dtype) -> TermsOf:
        """What makes the terms of each group of a batch."""
        table = sinusoids(self.clip, head_width, device=device, dtype=dtype)

        def terms(queries: Tensor, keys: Tensor) -> PositionTerms:
            return _FunctionalTerms(clipped(keys, queries, self.clip)[:, None], table)

        return terms


@dataclass(frozen=True, slots=True)
class _FunctionalTerms(PositionTerms):
    near: Tensor  # (b, 1, l, m) row of the table
    table: Tensor  # (2 clip + 1, K)

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        near = self.near.expand(*queries.shape[:-1], keys.shape[-2])
        return (queries @ self.table.T).gather(-1, near)  # (b, H, l, 2 clip + 1) gathered

    def values(self, weights: Tensor) -> Tensor:
        # sum of p[l, m] * table[near[l, m]], gathered by distance first: no (l, m, K) tensor
        sums = weights.new_zeros((*weights.shape[:-1], self.table.shape[0]))
        return sums.scatter_add(-1, self.near.expand(weights.shape), weights) @ self.table


def sinusoids(
    clip: int, width: int, *, device: torch.device | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """NEZHA's table, one row per distance -> (2 clip + 1, K).

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
    """The table row of each pair of positions: (b, m), (b, l) -> (b, l, m)."""
    return (keys[:, None, :] - queries[:, :, None]).clamp(-clip, clip) + clip
