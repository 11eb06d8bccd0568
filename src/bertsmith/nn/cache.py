"""Keys and values of texts that are written token by token, packed, without padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.layout import Causal, Layout, Prefix


class Cache:
    """What a model has computed of B texts so far; each forward pass with it adds the new rows.

    New rows may not change what older ones have seen, so `sees` is Causal, or Prefix with the
    whole source in the first pass. Texts can be reordered, repeated and dropped between passes.
    """

    def __init__(self, layers: int) -> None:
        self.layout: Layout | None = None  # of all rows so far
        self.memory: Layout | None = None  # of the rows that cross-attention looks at
        self._own: list[Tensor | None] = [None] * layers  # (T, 2 D) keys and values side by side
        self._cross: list[Tensor | None] = [None] * layers  # (S, 2 D)
        self._order: Tensor | None = None  # (T,) old and new rows, joined, in the order of texts

    @property
    def lengths(self) -> tuple[int, ...]:
        """Rows of each text so far, (B,); empty before the first pass."""
        return () if self.layout is None else self.layout.lengths

    def next_layout(self, lengths: Sequence[int], sees: Causal | Prefix = Causal()) -> Layout:  # noqa: B008 - frozen
        """The layout of `lengths` (B,) new rows whose positions go on where their texts end."""
        layout = Layout.of(lengths, sees=sees)
        if self.layout is None:
            return layout
        past = np.repeat(np.array(self.lengths, dtype=np.int64), np.asarray(lengths))
        device = self.layout.positions.device
        return Layout(layout.lengths, layout.positions + torch.from_numpy(past), sees).to(device)

    def extend(self, new: Layout) -> Layout:
        """Begin a pass over new rows: the layout of old and new rows together."""
        if not isinstance(new.sees, Causal | Prefix):
            raise TextError(f"a cache needs Causal or Prefix rows, not {type(new.sees).__name__}")
        if self.layout is None:
            self.layout, self._order = new, None
        else:
            if len(new.lengths) != len(self.lengths):
                raise TextError(
                    f"{len(new.lengths)} texts for a cache of {len(self.lengths)}: drop finished "
                    "texts with `select`, give others a length of 0"
                )
            joined = torch.cat([self.layout.positions, new.positions])
            self._order = _woven(self.lengths, new.lengths).to(joined.device)
            lengths = tuple(a + b for a, b in zip(self.lengths, new.lengths, strict=True))
            self.layout = Layout(lengths, joined[self._order], new.sees)
        new.sees.check(self.lengths)
        return self.layout

    def layer(self, number: int) -> LayerCache:
        """The part of one layer."""
        return LayerCache(self, number)

    def select(self, texts: Sequence[int]) -> None:
        """Keep these texts in this order: reorders beams, repeats texts, drops finished ones."""
        if self.layout is None:
            raise TextError("the cache is empty: run the model with it before selecting texts")
        self._own, self.layout = _selected(self._own, self.layout, texts)
        if self.memory is not None:
            self._cross, self.memory = _selected(self._cross, self.memory, texts)

    def append(self, layer: int, rows: Tensor) -> Tensor:
        """Keys and values of new rows (N, 2 D) -> those of old and new rows, by text (T, 2 D)."""
        old = self._own[layer]
        if old is not None and self._order is not None:
            rows = torch.cat([old, rows]).index_select(0, self._order)
        self._own[layer] = rows
        return rows

    def remember(self, layer: int, make: Callable[[], Tensor]) -> Tensor:
        """Keys and values of the memory (S, 2 D), made in the first pass only."""
        rows = self._cross[layer]
        if rows is None:
            rows = self._cross[layer] = make()
        return rows


class LayerCache:
    """One layer's view of a cache."""

    def __init__(self, cache: Cache, number: int) -> None:
        self._cache, self._number = cache, number

    def append(self, rows: Tensor) -> Tensor:
        """See `Cache.append`."""
        return self._cache.append(self._number, rows)

    def remember(self, make: Callable[[], Tensor]) -> Tensor:
        """See `Cache.remember`."""
        return self._cache.remember(self._number, make)


def _woven(old: Sequence[int], new: Sequence[int]) -> Tensor:
    """Rows of joined old and new rows in the order of texts: B, B lengths -> (T,)."""
    ends, new_ends = np.cumsum(old), np.cumsum(new)
    total = int(ends[-1]) if len(ends) else 0
    parts = [
        np.r_[end - a : end, total + new_end - b : total + new_end]
        for end, a, new_end, b in zip(ends, old, new_ends, new, strict=True)
    ]
    return torch.from_numpy(np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64))


def _selected(
    layers: Sequence[Tensor | None], layout: Layout, texts: Sequence[int]
) -> tuple[list[Tensor | None], Layout]:
    starts = layout.starts
    parts = [np.arange(starts[text], starts[text] + layout.lengths[text]) for text in texts]
    joined = np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)
    rows = torch.from_numpy(joined).to(layout.positions.device)
    lengths = tuple(layout.lengths[text] for text in texts)
    chosen = [None if one is None else one.index_select(0, rows) for one in layers]
    return chosen, Layout(lengths, layout.positions[rows], layout.sees.take(texts))
