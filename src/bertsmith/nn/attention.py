"""Multi-head attention over packed rows: of a text to itself or to a memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from bertsmith.nn.attention_plan import AttentionPlan, Grid, Group, pad_all
from bertsmith.nn.cache.layer import LayerCache
from bertsmith.nn.matmul_backends import linear_together
from bertsmith.nn.positions import PositionTerms


def cut_heads(
    joined: Tensor, grids: Sequence[Grid], *, count: int, heads: int
) -> list[tuple[Tensor, ...]]:
    """(R, count * D) -> `count` times (texts, H, width, K) for each grid, views where possible.

    Grids are disjoint and in the order of rows, as for `pad_all`.
    """
    padded = any(grid.index is not None for grid in grids)
    if padded or not (joined.requires_grad and torch.is_grad_enabled()):
        return [_heads(places, count, heads) for places in pad_all(joined, grids)]
    flat = _Cut.apply(joined, grids, count, heads)  # type: ignore[no-untyped-call]
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
        ctx: Any, joined: Tensor, grids: Sequence[Grid], count: int, heads: int
    ) -> tuple[Tensor, ...]:
        ctx.shape, ctx.grids, ctx.count, ctx.heads = joined.shape, grids, count, heads
        return tuple(part for grid in grids for part in _heads(grid.pad(joined), count, heads))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        covered = sum(grid.count for grid in ctx.grids) == ctx.shape[0]
        made = gradients[0].new_empty if covered else gradients[0].new_zeros
        gradient = made(ctx.shape)
        at = iter(gradients)
        for grid in ctx.grids:
            for part in _heads(grid.pad(gradient), ctx.count, ctx.heads):
                part.copy_(next(at))
        return gradient, None, None, None


class Attention(nn.Module):
    """Scaled dot-product attention of every row with the visible rows of its text."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        head_width: int | None = None,
        *,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        """Heads of width K, by default such that H of them are as wide as the rows."""
        super().__init__()
        self.heads = heads
        self.head_width = head_width or hidden // heads
        self.dropout = dropout
        attended = heads * self.head_width
        self.query = nn.Linear(hidden, attended, bias=bias)
        self.key = nn.Linear(hidden, attended, bias=bias)
        self.value = nn.Linear(hidden, attended, bias=bias)
        self.output = nn.Linear(attended, hidden, bias=bias)

    def forward(
        self,
        hidden: Tensor,
        memory: Tensor | None,
        plan: AttentionPlan,
        *,
        cache: LayerCache | None = None,
        head_mask: Tensor | None = None,
        probabilities: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """(T, D) -> (T or P, D), and the probabilities (B, H, L, M) when wanted.

        Rows of `hidden` attend to rows of `memory` (S, D), None: to those of `hidden` itself. A
        `cache` remembers keys and values.

        Probabilities are those of the softmax, before dropout and `head_mask` (H,), and zero
        outside of a text. They, `head_mask` and positions that change scores take the plain path,
        everything else the fused one.
        """
        square = None
        if probabilities:
            texts, queries, keys = plan.shape
            square = hidden.new_zeros((texts, self.heads, queries, keys))
        projected = self._projected(hidden, memory, plan, cache)
        contexts = self.contexts(projected, plan, head_mask, square)
        if not contexts:
            return self.output(hidden.new_zeros(0, self.output.in_features)), square
        joined = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return self.output(joined), square

    def bound(self, terms: PositionTerms | None) -> PositionTerms | None:
        """The terms of a group as this layer uses them; here all layers use them alike."""
        return terms

    def contexts(
        self,
        projected: Sequence[tuple[Tensor, ...]],
        plan: AttentionPlan,
        head_mask: Tensor | None,
        square: Tensor | None,
    ) -> list[Tensor]:
        """What the rows of each group see, packed: (b, H, l, K) of queries, keys, values -> (r, D).

        Probabilities are written to `square` (B, H, L, M) where it is given.
        """
        contexts = []
        for group, (q, k, v) in zip(plan.groups, projected, strict=True):
            terms = self.bound(group.terms)
            if terms is not None:
                q, k = terms.rotate(q, k)
            fused = terms is None or terms.fused
            if square is None and head_mask is None and fused:
                context = self._fused(q, k, v, group)
            else:
                context, weights = self._plain((q, k, v), group, terms, head_mask)
                if square is not None:
                    _place(square, group, weights)
            contexts.append(group.queries.pack(context.transpose(1, 2).flatten(2)))
        return contexts

    def _projected(
        self, hidden: Tensor, memory: Tensor | None, plan: AttentionPlan, cache: LayerCache | None
    ) -> list[tuple[Tensor, ...]]:
        """Queries (b, H, l, K), keys and values (b, H, m, K) of each group."""
        keys = [group.keys for group in plan.groups]
        if plan.rows is None and not plan.cross and memory is None and cache is None:
            joined = linear_together(hidden, (self.query, self.key, self.value))
            return cut_heads(joined, keys, count=3, heads=self.heads)
        query = self.query(hidden if plan.rows is None else hidden.index_select(0, plan.rows))
        joined = linear_together(hidden if memory is None else memory, (self.key, self.value))
        if cache is not None:
            cache.remember(joined)
        queries = [group.queries for group in plan.groups]
        asking = cut_heads(query, queries, count=1, heads=self.heads)
        looked_at = cut_heads(joined, keys, count=2, heads=self.heads)
        return [(*q, *kv) for q, kv in zip(asking, looked_at, strict=True)]

    def _rate(self) -> float:
        return self.dropout if self.training else 0.0

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, group: Group) -> Tensor:
        context = F.scaled_dot_product_attention(
            q, k, v, group.visible, self._rate(), is_causal=group.causal
        )
        return context if group.blind is None else context.masked_fill(group.blind, 0.0)

    def _plain(
        self,
        parts: tuple[Tensor, Tensor, Tensor],
        group: Group,
        terms: PositionTerms | None,
        head_mask: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The sums written out: (b, H, l, K) -> (b, H, l, K), (b, H, l, m)."""
        q, k, v = parts
        scores = q @ k.transpose(-1, -2)
        more = None if terms is None else terms.scores(q, k)
        scores = (scores if more is None else scores + more) * q.shape[-1] ** -0.5
        visible = group.visible
        if group.causal:
            visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        if visible is not None:
            scores = scores.masked_fill(~visible, float("-inf"))
        weights = scores.softmax(-1)
        if group.blind is not None:
            weights = weights.masked_fill(group.blind, 0.0)
        used = F.dropout(weights, self._rate()) if self.training else weights
        if head_mask is not None:
            used = used * head_mask.to(used.dtype)[:, None, None]
        context = used @ v
        more = None if terms is None else terms.values(used)
        return context if more is None else context + more, weights


def _place(square: Tensor, group: Group, weights: Tensor) -> None:
    """Copy a group's probabilities into the batch's (B, H, L, M), nothing for padded queries."""
    grid = group.queries
    if grid.back is not None:
        inside = weights.new_zeros(grid.texts * grid.width)
        inside[grid.back] = 1.0
        weights = weights * inside.view(grid.texts, 1, grid.width, 1)
    square[group.first : group.first + grid.texts, :, : grid.width, : group.keys.width] = weights
