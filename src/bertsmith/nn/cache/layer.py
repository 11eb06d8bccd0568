"""The keys and values of one layer in a cache, and attention to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.errors import TextError
from bertsmith.nn.cache.rows import Moves
from bertsmith.nn.positions import PositionTerms

if TYPE_CHECKING:
    from bertsmith.nn.cache.cache import Cache

Bound = Callable[[PositionTerms | None], PositionTerms | None]
GROWTH = 32  # places by which the written part grows, or a quarter of it where that is more
FUSED = 16  # rows times heads up to which fused attention is faster than two products


class LayerCache:
    """One layer: sources by group, (b, H, S, K) twice, and the written part, (R, H, m, K) twice."""

    def __init__(self, cache: Cache, heads: int) -> None:
        self._cache = cache
        self._heads = heads
        self._sources: list[tuple[Tensor, Tensor]] = []  # keys and values of each group
        self._written: tuple[Tensor, Tensor] | None = None  # with room for more rows and places

    @property
    def has_source(self) -> bool:
        """Whether the keys and values of the sources are known."""
        return bool(self._sources)

    def remember(self, rows: Tensor) -> None:
        """Store keys and values of the sources, side by side and packed: (T, 2 D)."""
        if not self._cache.groups:
            raise TextError("a cache needs its sources before their keys and values")
        for group in self._cache.groups:
            part = rows[group.start : group.start + group.count]
            if group.index is not None:
                part = part.index_select(0, torch.from_numpy(group.index).to(rows.device))
            shape = (len(group.texts), group.width, 2, self._heads, -1)
            keys, values = part.view(shape).permute(2, 0, 3, 1, 4)
            self._sources.append((keys.contiguous(), values.contiguous()))

    def attend(self, query: Tensor, key: Tensor, value: Tensor, bound: Bound) -> Tensor:
        """Self-attention of new rows, which are stored: (R n, D) three times -> (R n, D).

        `bound` gives positions inside attention as the layer uses them.
        """
        cache = self._cache
        if not cache.rows:
            return query
        shape = (cache.rows, cache.new, self._heads, -1)
        key, value = (part.view(shape).transpose(1, 2) for part in (key, value))
        self._store(key, value)
        keys, values = self._all()
        asking = query.view(shape).transpose(1, 2)  # (R, H, n, K)
        terms = bound(cache.terms)
        if terms is not None:
            context = _with_terms(asking, keys, values, self._own(cache.mask), terms)
        elif cache.own and self._sources:
            context = self._side_by_side(asking, keys, values)
        else:
            context = _attended(asking, keys, values, self._own(cache.mask))
        return context.transpose(1, 2).reshape(query.shape)

    def attend_across(self, query: Tensor) -> Tensor:
        """Attention of new rows to the sources: (R n, D) -> (R n, D)."""
        contexts = []
        for number, (keys, values) in enumerate(self._sources):
            asking = self._asking(query, number)
            mask = self._own(self._cache.source_masks[number])
            contexts.append(self._answer(_attended(asking, keys, values, mask), number))
        if not contexts:
            return query
        joined = contexts[0] if len(contexts) == 1 else torch.cat(contexts)
        return joined.view(query.shape)

    def join(self, index: Sequence[Tensor]) -> None:
        """Copy the source of each live row in front of its written part; sources are released.

        `index` has the place of each row's source in its group, group by group.
        """
        cache = self._cache
        written = self._written
        sides = []
        for side in (0, 1):
            first = self._sources[0][side]
            room = cache.joined + cache.written + GROWTH
            whole = first.new_zeros(cache.rows, self._heads, room, first.shape[-1])
            start = 0
            for part, rows in zip(self._sources, index, strict=True):
                own = part[side].index_select(0, rows.to(first.device))
                at = cache.joined - own.shape[2]
                whole[start : start + len(rows), :, at : cache.joined] = own
                start += len(rows)
            if written is not None:
                before = written[side][: cache.rows, :, : cache.written]
                whole[:, :, cache.joined : cache.places] = before
            sides.append(whole)
        self._written = (sides[0], sides[1])
        self._sources = []

    def move(self, moves: Moves) -> None:
        """Hold other live rows."""
        kept = []
        for (keys, values), (to, taken, count) in zip(self._sources, moves.groups, strict=True):
            if len(to):
                for side in (keys, values):
                    _copy_rows(side, to, taken)
            if count:
                kept.append((keys[:count], values[:count]))
        self._sources = kept
        if self._written is None or not len(moves.to):
            return
        places = self._cache.places
        keys, values = self._written
        if moves.in_place and len(moves.sources) <= len(keys):
            for side in (keys, values):
                _copy_rows(side[:, :, :places], moves.to, moves.taken)
            return
        self._written = (
            _chosen_rows(keys, moves.sources, places),
            _chosen_rows(values, moves.sources, places),
        )

    def _store(self, key: Tensor, value: Tensor) -> None:
        """Put new keys and values (R, H, n, K) behind the others."""
        rows, heads, new, width = key.shape
        start = self._cache.places
        if self._written is None or self._written[0].shape[2] < start + new:
            room = max(start + new, start + max(GROWTH, start // 4))
            old = self._written
            grown = [key.new_empty(rows, heads, room, width) for _ in range(2)]
            if old is not None:
                for side, before in zip(grown, old, strict=True):
                    side[:, :, :start] = before[:rows, :, :start]
            self._written = (grown[0], grown[1])
        for side, part in zip(self._written, (key, value), strict=True):
            side[:rows, :, start : start + new] = part

    def _all(self) -> tuple[Tensor, Tensor]:
        """Keys and values of the written part, with those of the pass: (R, H, m, K)."""
        cache = self._cache
        if self._written is None:
            raise TextError("nothing has been written to this cache")
        at = slice(cache.first, cache.places + cache.new)
        keys, values = self._written
        return keys[: cache.rows, :, at], values[: cache.rows, :, at]

    def _own(self, mask: Tensor | None) -> Tensor | None:
        """A mask, alike for all heads, for those of this layer: other layers may have more."""
        fewer = mask is not None and mask.shape[1] > self._heads
        return mask[:, : self._heads] if mask is not None and fewer else mask

    def _asking(self, query: Tensor, number: int) -> Tensor:
        """The queries of a group's sources: (R n, D) -> (b, H, k n, K)."""
        cache, grid = self._cache, self._cache.grids[number]
        places = grid.pad(query.view(cache.rows, -1))  # (b, k, n D)
        return places.view(grid.texts, grid.width * cache.new, self._heads, -1).transpose(1, 2)

    def _answer(self, context: Tensor, number: int) -> Tensor:
        """The reverse: (b, H, k n, K) -> (rows of the group, n D)."""
        grid = self._cache.grids[number]
        rows = context.transpose(1, 2).reshape(grid.texts, grid.width, -1)
        return grid.pack(rows)

    def _side_by_side(self, asking: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attention to sources and written parts with one softmax: (R, H, n, K) -> the same."""
        cache = self._cache
        rows, heads, new, width = asking.shape
        scale = width**-0.5
        query = asking.transpose(1, 2).reshape(rows * new, -1)
        own = asking @ keys.transpose(-1, -2) * scale
        mask = self._own(cache.mask)
        own = own if mask is None else own + mask
        context = torch.empty_like(asking)
        for number, (source, looked_at) in enumerate(self._sources):
            grid = cache.grids[number]
            part = slice(grid.start, grid.start + grid.count)
            scores = self._asking(query, number) @ source.transpose(-1, -2) * scale
            mask = self._own(cache.source_masks[number])
            scores = scores if mask is None else scores + mask  # (b, H, k n, S)
            size = scores.shape[-1]
            scores = self._answer(scores, number).view(-1, new, heads, size).transpose(1, 2)
            weights = torch.cat([scores, own[part]], dim=-1).softmax(-1)
            there = weights[..., :size].transpose(1, 2).reshape(grid.count, -1)
            there = grid.pad_own(there).view(grid.texts, grid.width * new, heads, size)
            seen = self._answer(there.transpose(1, 2) @ looked_at, number)
            seen = seen.view(-1, new, heads, width).transpose(1, 2)
            context[part] = seen + weights[..., size:] @ values[part]
        return context


def _with_terms(
    asking: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, terms: PositionTerms
) -> Tensor:
    """Attention with positions inside it: (R, H, n, K), (R, H, m, K) twice -> (R, H, n, K)."""
    asking, keys = terms.rotate(asking, keys)
    scores = asking @ keys.transpose(-1, -2)
    more = terms.scores(asking, keys)
    scores = (scores if more is None else scores + more) * asking.shape[-1] ** -0.5
    weights: Tensor = (scores if mask is None else scores + mask).softmax(-1)
    context = weights @ values
    more = terms.values(weights)
    return context if more is None else context + more


def _attended(asking: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Attention of few rows to many: (b, H, l, K), (b, H, m, K) twice -> (b, H, l, K)."""
    texts, heads, queries, width = asking.shape
    if texts * heads * queries <= FUSED:
        return F.scaled_dot_product_attention(asking, keys, values, mask)
    query = asking.reshape(-1, queries, width)
    key, value = keys.flatten(0, 1), values.flatten(0, 1)
    added = (
        query.new_empty(1, 1, 1) if mask is None else mask.expand(texts, -1, -1, -1).flatten(0, 1)
    )
    scores = torch.baddbmm(
        added, query, key.transpose(1, 2), beta=0 if mask is None else 1, alpha=width**-0.5
    )
    return torch.bmm(scores.softmax(-1), value).view(asking.shape)


def _copy_rows(side: Tensor, to: np.ndarray, taken: np.ndarray) -> None:
    """Overwrite rows of (R, ...) by others of it."""
    source = torch.from_numpy(taken).to(side.device)
    side.index_copy_(0, torch.from_numpy(to).to(side.device), side.index_select(0, source))


def _chosen_rows(side: Tensor, rows: np.ndarray, places: int) -> Tensor:
    """Rows of (R, H, m, K) in a new tensor, with what is in their first places."""
    index = torch.from_numpy(rows).to(side.device)
    chosen = side.new_empty(len(rows), *side.shape[1:])
    chosen[:, :, :places] = side[:, :, :places].index_select(0, index)
    return chosen
