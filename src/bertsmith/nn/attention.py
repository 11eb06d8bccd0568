"""Multi-head self-attention over rows, the one place where the tokens of a text meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from bertsmith.nn.attention_plan import Group, Regrouping, Side, spread_all
from bertsmith.nn.matmul_backends import linear_together


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


class Attention(nn.Module):
    """Scaled dot-product attention of every row with the visible rows of its own text."""

    def __init__(self, hidden: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.output = nn.Linear(hidden, hidden)

    def forward(
        self,
        hidden: Tensor,
        plan: Regrouping,
        *,
        head_mask: Tensor | None = None,
        probabilities: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(T, D) -> (T or P, D), and the probabilities (B, H, M, M) when asked for.

        Probabilities are those of the softmax, before dropout and `head_mask` (H,), and zero
        outside of a text. They and `head_mask` take the plain path, everything else the fused one.
        """
        plain = probabilities or head_mask is not None or plan.distances is not None
        square = None
        if probabilities:
            shape = (plan.texts, self.heads, plan.longest, plan.longest)
            square = hidden.new_zeros(shape)
        contexts = []
        for group, (q, k, v) in zip(plan.groups, self._projected(hidden, plan), strict=True):
            if plain:
                context, weights = self._plain(q, k, v, group, plan.distances, head_mask)
                if square is not None:
                    _place(square, group, weights)
            else:
                context = self._fused(q, k, v, group)
            contexts.append(group.queries.gather(context.transpose(1, 2).flatten(2)))
        if not contexts:
            return self.output(hidden[:0]), square  # no rows at all
        joined = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return self.output(joined), square

    def _projected(self, hidden: Tensor, plan: Regrouping) -> list[tuple[Tensor, ...]]:
        """Queries (b, H, l, K), keys and values (b, H, m, K) of each group."""
        keys = [group.keys for group in plan.groups]
        if plan.rows is None:
            joined = linear_together(hidden, (self.query, self.key, self.value))
            return cut_heads(joined, keys, count=3, heads=self.heads)
        query = self.query(hidden.index_select(0, plan.rows))
        joined = linear_together(hidden, (self.key, self.value))
        queries = [group.queries for group in plan.groups]
        asked = cut_heads(query, queries, count=1, heads=self.heads)
        looked_at = cut_heads(joined, keys, count=2, heads=self.heads)
        return [(*q, *kv) for q, kv in zip(asked, looked_at, strict=True)]

    def _rate(self) -> float:
        return self.dropout if self.training else 0.0

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, group: Group) -> Tensor:
        context = F.scaled_dot_product_attention(
            q, k, v, group.visible, self._rate(), is_causal=group.causal
        )
        return context if group.blind is None else context.masked_fill(group.blind, 0.0)

    def _plain(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        group: Group,
        distances: Tensor | None,
        head_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The sums written out: (b, H, l, K) -> (b, H, l, K), (b, H, l, m)."""
        scores = q @ k.transpose(-1, -2)
        near = None
        if distances is not None and group.near is not None:
            near = group.near.expand(scores.shape)
            scores = scores + (q @ distances.T).gather(-1, near)  # (b, H, l, 2 clip + 1) gathered
        scores = scores * q.shape[-1] ** -0.5
        visible = group.visible
        if group.causal:
            visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        if visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        weights = scores.softmax(-1)
        if group.blind is not None:
            weights = weights.masked_fill(group.blind, 0.0)
        kept = F.dropout(weights, self._rate()) if self.training else weights
        if head_mask is not None:
            kept = kept * head_mask.to(kept.dtype)[:, None, None]
        context = kept @ v
        if distances is not None and near is not None:
            # sum of p[l, m] * table[near[l, m]], gathered by distance first: no (l, m, K) tensor
            sums = kept.new_zeros((*kept.shape[:-1], distances.shape[0]))
            context = context + sums.scatter_add(-1, near, kept) @ distances
        return context, weights


def _place(square: Tensor, group: Group, weights: Tensor) -> None:
    """Copy a group's probabilities into the batch's (B, H, M, M), nothing for padded queries."""
    side = group.queries
    if side.back is not None:
        inside = weights.new_zeros(side.texts * side.width)
        inside[side.back] = 1.0
        weights = weights * inside.view(side.texts, 1, side.width, 1)
    square[group.first : group.first + side.texts, :, : side.width, : side.width] = weights
