"""Projected rows as the rectangles that attention multiplies, one for each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from bertsmith.nn.regroup import Side, spread_all


def cut_heads(
    joined: Tensor, sides: Sequence[Side], *, count: int, heads: int
) -> list[tuple[Tensor, ...]]:
    """(R, count * D) -> `count` times (texts, H, width, K) for each side, views where possible.

    Sides are disjoint and in the order of rows, as for `spread_all`.
    """
    padded = any(side.index is not None for side in sides)
    if padded or not (joined.requires_grad and torch.is_grad_enabled()):
        return [_heads(places, count, heads) for places in spread_all(joined, sides)]
    flat = _Cut.apply(joined, sides, count, heads)  # type: ignore[no-untyped-call]
    return [flat[start : start + count] for start in range(0, len(flat), count)]


def _heads(places: Tensor, count: int, heads: int) -> tuple[Tensor, ...]:
    """(texts, width, count * D) -> `count` times (texts, H, width, K)."""
    texts, width, _ = places.shape
    return places.view(texts, width, count, heads, -1).permute(2, 0, 3, 1, 4).unbind()


class _Cut(torch.autograd.Function):
    """The views, with a gradient that is written to its place once.

    What autograd does by itself, stacking three gradients, turning them around and joining the
    groups, moves every number three times: a fiftieth of a step of 16 texts of 256 tokens.
    """

    @staticmethod
    def forward(
        ctx: Any, joined: Tensor, sides: Sequence[Side], count: int, heads: int
    ) -> tuple[Tensor, ...]:
        ctx.shape, ctx.sides, ctx.count, ctx.heads = joined.shape, sides, count, heads
        return tuple(part for side in sides for part in _heads(side.spread(joined), count, heads))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        covered = sum(side.count for side in ctx.sides) == ctx.shape[0]
        made = gradients[0].new_empty if covered else gradients[0].new_zeros
        found = made(ctx.shape)
        at = iter(gradients)
        for side in ctx.sides:
            for part in _heads(side.spread(found), ctx.count, ctx.heads):
                part.copy_(next(at))
        return found, None, None, None
