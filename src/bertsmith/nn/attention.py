"""Multi-head attention over packed rows: of a text to itself or to a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class AttentionTrace:
    """What one layer computes of a batch, filled by its pass; 0 at places outside of a text.

    `weights` (B, H, L, M) are those of the softmax, before dropout and a `head_mask`. With
    `projections` there are also `queries` (B, H, L, K), `keys` and `values` (B, H, M, K), and
    `added` (B, H, L, M) where positions are inside attention: the weights are a softmax over what
    is visible of (queries keys' + added) / sqrt(K).
    """

    projections: bool = False
    weights: Tensor = field(default_factory=lambda: torch.empty(0))
    queries: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None
    added: Tensor | None = None

    def open(self, plan: AttentionPlan, like: Tensor, heads: int, width: int) -> None:
        """Make room for a batch."""
        texts, queries, keys = plan.shape
        self.weights = like.new_zeros((texts, heads, queries, keys))
        if self.projections:
            self.queries = like.new_zeros((texts, heads, queries, width))
            self.keys, self.values = like.new_zeros((2, texts, heads, keys, width)).unbind()
            if any(group.terms is not None for group in plan.groups):
                self.added = torch.zeros_like(self.weights)

    def fill(
        self, group: Group, parts: tuple[Tensor, ...], weights: Tensor, added: Tensor | None
    ) -> None:
        """Queries, keys and values of a group (b, H, l or m, K), and what they gave."""
        _place(self.weights, group, weights, group.queries)
        if self.projections:
            grids = (group.queries, group.keys, group.keys)
            whole = (self.queries, self.keys, self.values)
            for target, part, grid in zip(whole, parts, grids, strict=True):
                _place(target, group, part, grid)
            if added is not None:
                keys = _inside(group.keys, added)
                added = added if keys is None else added * keys[:, None, None, :]
                _place(self.added, group, added, group.queries)

    def of_text(self, number: int, length: int) -> AttentionTrace:
        """The part of a text that attends to itself: weights (H, n, n), the others (H, n, K)."""

        def rows(whole: Tensor | None) -> Tensor | None:
            return None if whole is None else whole[number, :, :length]

        return AttentionTrace(
            self.projections,
            self.weights[number, :, :length, :length],
            *(rows(self.queries), rows(self.keys), rows(self.values)),
            None if self.added is None else self.added[number, :, :length, :length],
        )


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
        trace: AttentionTrace | None = None,
    ) -> Tensor:
        """(T, D) -> (T or P, D).

        Rows of `hidden` attend to rows of `memory` (S, D), None: to those of `hidden` itself. A
        `cache` remembers keys and values, a `trace` what was computed.

        A `trace`, a `head_mask` (H,) and positions that change scores take the plain path,
        everything else the fused one.
        """
        if trace is not None:
            trace.open(plan, hidden, self.heads, self.head_width)
        projected = self._projected(hidden, memory, plan, cache)
        contexts = self.contexts(projected, plan, head_mask, trace)
        if not contexts:
            contexts = [hidden.new_zeros(0, self.output.in_features)]
        joined = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return self.output(joined)  # type: ignore[no-any-return]

    def bound(self, terms: PositionTerms | None) -> PositionTerms | None:
        """The terms of a group as this layer uses them; here all layers use them alike."""
        return terms

    def contexts(
        self,
        projected: Sequence[tuple[Tensor, ...]],
        plan: AttentionPlan,
        head_mask: Tensor | None,
        trace: AttentionTrace | None,
    ) -> list[Tensor]:
        """What rows see, packed: (b, H, l, K) of queries, keys, values of a group -> (r, D)."""
        contexts = []
        for group, (q, k, v) in zip(plan.groups, projected, strict=True):
            terms = self.bound(group.terms)
            if terms is not None:
                q, k = terms.rotate(q, k)
            fused = terms is None or terms.fused
            if trace is None and head_mask is None and fused:
                context = self._fused(q, k, v, group)
            else:
                context, weights, added = self._plain((q, k, v), group, terms, head_mask)
                if trace is not None:
                    trace.fill(group, (q, k, v), weights, added)
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
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """The sums written out, weights and what positions added: -> (b, H, l, K), (b, H, l, m)."""
        q, k, v = parts
        scores = q @ k.transpose(-1, -2)
        added = None if terms is None else terms.scores(q, k)
        scores = (scores if added is None else scores + added) * q.shape[-1] ** -0.5
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
        return context if more is None else context + more, weights, added


def _place(whole: Tensor | None, group: Group, part: Tensor, grid: Grid) -> None:
    """Copy a group's (b, H, l, X), l rows of `grid`, into (B, H, L, X or more), 0 for padding."""
    if whole is None:
        return
    inside = _inside(grid, part)
    part = part if inside is None else part * inside[:, None, :, None]
    whole[group.first : group.first + grid.texts, :, : grid.width, : part.shape[-1]] = part


def _inside(grid: Grid, like: Tensor) -> Tensor | None:
    """(b, l) of 1 where a place of a grid is no padding, None: it has none."""
    if grid.back is None:
        return None
    inside = like.new_zeros(grid.texts * grid.width)
    inside[grid.back] = 1.0
    return inside.view(grid.texts, grid.width)
