"""Attention with relative positions and segments, two streams and a memory (XLNet).

Yang et al. 2019 (arXiv:1906.08237), after Transformer-XL (Dai et al. 2019, arXiv:1901.02860).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.attention import Attention, AttentionTrace, cut_heads
from bertsmith.nn.attention_plan import AttentionPlan
from bertsmith.nn.cache.layer import LayerCache
from bertsmith.nn.matmul_backends import linear_together
from bertsmith.nn.positions import AttentionPositions, PositionTerms, TermsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPlan(AttentionPlan):
    """How rows of two streams attend, the `count` content rows (T) first and then the queries.

    Both look at the content rows, after those of `memory` (S, D) where there is one; `order`
    (S + T,) brings memory and content together text by text. Without `content` the queries alone
    are computed, as in the last block.
    """

    count: int
    content: AttentionPlan | None = None
    queries: AttentionPlan | None = None
    memory: Tensor | None = None
    order: Tensor | None = None


class RelativePositions(AttentionPositions):
    """Sinusoids of the distance, projected by each layer; distances beyond `clamp` count as it."""

    def __init__(self, clamp: int = 0) -> None:
        """`clamp` 0 tells all distances apart."""
        super().__init__()
        self.clamp = clamp

    def of_batch(self, head_width: int, *, device: torch.device, dtype: torch.dtype) -> TermsOf:
        """What makes the places of each group of a batch, (b, l) positions or, with segments,
        (b, l, 2)."""
        distances = _Distances(self.clamp, device, dtype)

        def terms(queries: Tensor, keys: Tensor) -> PositionTerms:
            other = None
            if queries.dim() == 3:
                other = (queries[:, :, None, 1] != keys[:, None, :, 1])[:, None].to(dtype)
                queries, keys = queries[..., 0], keys[..., 0]
            return _places(queries, keys, other, distances)

        return terms


class _Distances:
    """The distances of a batch: one table, which each layer projects once for all its groups."""

    def __init__(self, clamp: int, device: torch.device, dtype: torch.dtype) -> None:
        self.clamp, self.device, self.dtype = clamp, device, dtype
        self.reach = 1  # the table holds the distances from `reach` down to `-reach`
        self._table: Tensor | None = None
        self._projected: tuple[RelativeAttention, Tensor] | None = None

    def include(self, farthest: int) -> None:
        """Make room for distances of up to that many tokens."""
        if farthest >= self.reach:
            self.reach, self._table, self._projected = farthest + 1, None, None

    def of(self, attention: RelativeAttention) -> Tensor:
        """The vectors of all distances in one layer -> (H, 2 reach + 1, K)."""
        if self._projected is None or self._projected[0] is not attention:
            width = attention.relative.in_features
            if self._table is None or self._table.shape[1] != width:
                self._table = self._sinusoids(width)
            rows: Tensor = attention.relative(self._table)
            heads = rows.view(len(rows), attention.heads, -1).transpose(0, 1)
            self._projected = (attention, heads)
        return self._projected[1]

    def _sinusoids(self, width: int) -> Tensor:
        """Sines of the distance side by side with its cosines: -> (2 reach + 1, D)."""
        distance = torch.arange(self.reach, -self.reach - 1, -1.0, device=self.device)
        if self.clamp:
            distance = distance.clamp(-self.clamp, self.clamp)
        even = torch.arange(0, width, 2, device=self.device)
        angles = distance[:, None] * torch.exp(even * (-math.log(10_000.0) / width))
        return torch.cat([angles.sin(), angles.cos()], dim=1).to(self.dtype)


@dataclass(frozen=True, slots=True)
class RelativePlaces(PositionTerms):
    """Where the queries and keys of a group stand, for every layer.

    `near` (b, 1, l, m) is the row of each pair in the table of distances, None where queries and
    keys follow one another: then `shift` is the distance of the first query from the first key.
    `other` (b, 1, l, m) is 1 between segments and 0 inside one, None where there is one only.
    """

    distances: _Distances
    shift: int
    near: Tensor | None = field(default=None)
    other: Tensor | None = field(default=None)

    def by_distance(self, asking: Tensor, attention: RelativeAttention, keys: int) -> Tensor:
        """Queries times the vectors of their distances to m keys: (b, H, l, K) -> (b, H, l, m)."""
        table = self.distances.of(attention)
        if self.near is not None:
            near = self.near + self.distances.reach
            scores = asking @ table.transpose(-1, -2)
            return scores.gather(-1, near.expand(*asking.shape[:-1], keys))
        count = asking.shape[-2]
        first = self.distances.reach - self.shift - count
        table = table[:, first : first + count + keys]
        return shifted(asking @ table.transpose(-1, -2), keys)


def shifted(scores: Tensor, keys: int) -> Tensor:
    """Column l - i + j of row i becomes its column j: (..., l, l + m) -> (..., l, m), views."""
    queries, width = scores.shape[-2:]
    flat = scores.flatten(-2)[..., queries:]
    return flat.view(*scores.shape[:-2], queries, width - 1)[..., :keys]


def _places(
    queries: Tensor, keys: Tensor, other: Tensor | None, distances: _Distances
) -> RelativePlaces:
    """(b, l) and (b, m) positions; distances by a shift where they are regular, else gathered."""
    if not queries.numel() or not keys.numel():
        return RelativePlaces(distances, 0, None, other)
    count, width = queries.shape[1], keys.shape[1]
    shift = int(queries[0, 0] - keys[0, 0])
    steps = torch.arange(max(count, width), device=queries.device)
    regular = torch.equal(queries - queries[:, :1], steps[:count].expand_as(queries))
    regular &= torch.equal(keys - keys[:, :1], steps[:width].expand_as(keys))
    if regular and torch.equal(queries[:, 0] - keys[:, 0], shift + 0 * keys[:, 0]):
        distances.include(max(abs(shift + count), abs(shift - width)))
        return RelativePlaces(distances, shift, None, other)
    near = keys[:, None, :] - queries[:, :, None]
    distances.include(int(near.abs().max()))
    return RelativePlaces(distances, 0, near[:, None], other)


@dataclass(frozen=True, slots=True)
class _LayerTerms(PositionTerms):
    """Places as one layer scores them."""

    places: RelativePlaces
    attention: RelativeAttention

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        own = self.attention
        added = self.places.by_distance(queries + own.position_bias[:, None], own, keys.shape[-2])
        added = added + (keys @ own.content_bias[:, :, None]).transpose(-1, -2)
        if self.places.other is not None:
            # What the same segment adds is the same for all keys of a query: softmax cancels
            # all but the difference.
            change = own.segments[1] - own.segments[0]  # (H, K)
            asked = (queries + own.segment_bias[:, None]) @ change[:, :, None]
            added = torch.addcmul(added, asked, self.places.other)
        return added


class RelativeAttention(Attention):
    """Attention whose scores know distances and whether two tokens are of one segment.

    Score(i, j) = (q_i + content_bias) k_j + (q_i + position_bias) r(i - j) + (q_i + segment_bias)
    s(i, j), divided by sqrt(K); r is `relative` of the sinusoids of the distance, s row 0 of
    `segments` inside a segment and row 1 between two.
    """

    def __init__(
        self, hidden: int, heads: int, head_width: int | None = None, *, dropout: float = 0.0
    ) -> None:
        super().__init__(hidden, heads, head_width, dropout=dropout, bias=False)
        width = self.head_width
        self.relative = nn.Linear(hidden, heads * width, bias=False)
        self.content_bias = nn.Parameter(torch.empty(heads, width))
        self.position_bias = nn.Parameter(torch.empty(heads, width))
        self.segment_bias = nn.Parameter(torch.empty(heads, width))
        self.segments = nn.Parameter(torch.empty(2, heads, width))

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
        """(T, D) -> (T or P, D); rows of both streams (T + P, D) -> the same, or (P, D)."""
        if not isinstance(plan, StreamsPlan):
            return super().forward(
                hidden,
                memory,
                plan,
                cache=cache,
                head_mask=head_mask,
                trace=trace,
            )
        if cache is not None or trace is not None:
            raise TextError("two streams are computed without a cache and without a trace")
        content = hidden[: plan.count]
        looked_at = content if plan.memory is None else torch.cat([plan.memory, content])
        joined = linear_together(looked_at, (self.key, self.value))
        joined = joined if plan.order is None else joined.index_select(0, plan.order)
        streams = [(plan.content, content), (plan.queries, hidden[plan.count :])]
        contexts = [
            self._stream(self.query(rows), joined, own, head_mask)
            for own, rows in streams
            if own is not None
        ]
        return self.output(torch.cat(contexts))  # type: ignore[no-any-return]

    def bound(self, terms: PositionTerms | None) -> PositionTerms | None:
        """The terms of a group as this layer scores them."""
        return _LayerTerms(terms, self) if isinstance(terms, RelativePlaces) else terms

    def _stream(
        self, query: Tensor, joined: Tensor, plan: AttentionPlan, head_mask: Tensor | None
    ) -> Tensor:
        """One stream of projected rows (P, D) to keys and values (S + T, 2 D): -> (P, D)."""
        asking = cut_heads(query, [g.queries for g in plan.groups], count=1, heads=self.heads)
        looked_at = cut_heads(joined, [g.keys for g in plan.groups], count=2, heads=self.heads)
        projected = [(*q, *kv) for q, kv in zip(asking, looked_at, strict=True)]
        contexts = self.contexts(projected, plan, head_mask, None)
        return torch.cat(contexts) if contexts else query[:0]


def memory_order(memory: Sequence[int], lengths: Sequence[int], device: torch.device) -> Tensor:
    """The rows of memory (S,) and content (T,) text by text: -> (S + T,)."""
    past, at, rows = 0, sum(memory), []
    for before, length in zip(memory, lengths, strict=True):
        rows += [torch.arange(past, past + before), torch.arange(at, at + length)]
        past, at = past + before, at + length
    return torch.cat(rows).to(device) if rows else torch.empty(0, dtype=torch.long, device=device)
