"""Keys and values of texts that are written step by step, so that old rows are computed once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.attention_plan import Grid, grid_of
from bertsmith.nn.cache.layer import LayerCache
from bertsmith.nn.cache.rows import Numbers, SourceGroup, rearranged, source_groups
from bertsmith.nn.cache.steps import BlockStep
from bertsmith.nn.layout import Causal, Layout, Prefix
from bertsmith.nn.positions import PositionTerms, TermsOf


class Cache:
    """What a model has computed of the texts under way; each pass adds as many rows to each.

    Two parts: the *source*, from the first pass, once per text; and what was *written* since, for
    each of R live rows. Several live rows, such as beams, may share a source. An encoder attends to
    both parts, a decoder to the written one, and its cross-attention to the source.
    """

    def __init__(self, steps: Sequence[BlockStep]) -> None:
        """`steps` are those of a model's blocks; one with fewer heads reads as many of a mask."""
        self.heads = max(step.heads for step in steps)
        self.own = False  # the source is that of self-attention, not of a memory
        self.written = 0  # rows per live row
        self.new = 0  # of the pass under way
        self.joined = 0  # places of the source in front of the written part, 0: it is kept apart
        self.last_unseen = False  # the last new row of each live row is not seen, even by itself
        self.groups: list[SourceGroup] = []
        self.grids: list[Grid] = []  # the live rows of each group, by source
        self.source_masks: list[Tensor | None] = []  # (b, H, 1, S) added to a group's scores
        self.mask: Tensor | None = None  # (R or 1, H or 1, n, m) added to those of the written part
        self.terms: PositionTerms | None = None
        self._steps = tuple(steps)
        self._layers = [LayerCache(self, step.heads) for step in steps]
        self._sizes: Numbers = np.empty(0, np.int64)  # (B,) tokens of each source
        self._texts: Numbers = np.empty(0, np.int64)  # (R,) the source of each slot
        self._order: Numbers = np.empty(0, np.int64)  # (R,) the slot of each live row
        self._inward: Tensor | None = None  # (R,) the live row of each slot, None: the same order
        self._outward: Tensor | None = None

    @property
    def begun(self) -> bool:
        """Whether the sources have been read."""
        return len(self._sizes) > 0

    @property
    def rows(self) -> int:
        """R, the number of live rows."""
        return len(self._order)

    @property
    def texts(self) -> tuple[int, ...]:
        """The number of each live row's source, R of them."""
        return tuple(self._texts[self._order].tolist())

    @property
    def lengths(self) -> tuple[int, ...]:
        """The rows in self-attention of each live row so far, R of them."""
        return tuple(self._past().tolist())

    @property
    def first(self) -> int:
        """The first place of the written part that any live row uses."""
        return self.joined - self._longest() if self.joined else 0

    @property
    def places(self) -> int:
        """The places of the written part in use, those of a joined source too."""
        return self.joined + self.written

    def next_layout(self, count: int = 1) -> Layout:
        """The layout of `count` further rows per live row; positions continue the texts."""
        past = self._past()[:, None] + np.arange(count)
        return Layout((count,) * self.rows, torch.from_numpy(past.ravel()), Causal())

    def layer(self, number: int) -> LayerCache:
        """The part of one layer."""
        return self._layers[number]

    def open(self, sources: Layout, *, own: bool) -> None:
        """Begin with B sources, one live row each: those of self-attention, or of a memory.

        New rows may not change what the rows of a source have seen.
        """
        if self.begun:
            raise TextError("this cache has its sources: begin other texts with a new cache")
        sees = sources.sees
        if own and not isinstance(sees, Causal | Prefix):
            raise TextError(f"a cache needs Causal or Prefix rows, not {type(sees).__name__}")
        if own and isinstance(sees, Prefix) and sees.sources != sources.lengths:
            raise TextError(
                f"the first pass with a cache reads the sources alone, {sees.sources} tokens, "
                f"not {sources.lengths}"
            )
        if not all(sources.lengths):
            raise TextError("a cache needs at least one token of each source")
        self.own = own
        self._sizes = np.array(sources.lengths, dtype=np.int64)
        self.groups = source_groups(sources.lengths)
        self._place(np.arange(len(self._sizes)), np.arange(len(self._sizes)))

    def run(
        self,
        hidden: Tensor,
        layout: Layout,
        *,
        memory: Tensor | None = None,
        terms: TermsOf | None = None,
    ) -> Tensor:
        """A pass of new rows, as many of each live row, through the blocks: (N, D) -> (N, D).

        `memory` (S, D) are the sources of a decoder, needed in its first pass; `terms` are
        positions inside attention. `advance` ends the pass.
        """
        self._extend(layout, hidden, terms)
        hidden = _turned(hidden, self._inward)
        for step, layer in zip(self._steps, self._layers, strict=True):
            hidden = step(hidden, memory, layer)
        return _turned(hidden, self._outward)

    def advance(self, count: int | None = None) -> None:
        """End a pass: of its new rows the first `count` of each live row stay, by default all."""
        self.written += self.new if count is None else count
        self.new = 0

    def keep(self, rows: Sequence[int] | Numbers) -> None:
        """Continue with these live rows in this order: reorders, repeats and drops them.

        Only rows that change their place are copied, and of the written part alone.
        """
        if not self.begun:
            raise TextError("the cache is empty: run the model with it before choosing rows")
        slots = self._order[np.asarray(rows, dtype=np.int64)]
        moves = rearranged(slots, self._texts, self.groups)
        for layer in self._layers:
            layer.move(moves)
        self._place(self._texts[moves.sources], moves.order)

    def _extend(self, layout: Layout, like: Tensor, terms: TermsOf | None) -> None:
        """Begin a pass; `like` is a tensor of the type of its rows."""
        counts = set(layout.lengths) or {1}
        if len(layout.lengths) != self.rows or len(counts) > 1:
            raise TextError(
                f"a pass with a cache has as many rows of each of its {self.rows} live rows, "
                f"not {layout.lengths}: let finished texts leave with `keep`"
            )
        self.new = counts.pop()
        if self.own and self.groups and (terms is not None or self._unshared()):
            self._join()  # terms need all places of a row side by side
        if len(self.source_masks) != len(self.groups):
            parts = (self._sizes, self.heads, like)
            self.source_masks = [_source_mask(group, *parts) for group in self.groups]
        self.mask = self._mask(like)
        self.terms = None if terms is None else terms(*self._positions(like.device))

    def _unshared(self) -> bool:
        """Whether each live row has a source of its own, and all sources about the same length."""
        return len(set(self._texts.tolist())) == self.rows and len(self.groups) == 1

    def _past(self) -> Numbers:
        past = np.full(self.rows, self.written, dtype=np.int64)
        return past + self._sizes[self._texts[self._order]] if self.own else past

    def _longest(self) -> int:
        return int(self._sizes[self._texts].max(initial=0))

    def _place(self, texts: Numbers, order: Numbers) -> None:
        """Note which source each slot has, and which slot each live row."""
        self._texts, self._order = texts, order
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        same = bool((order == np.arange(len(order))).all())
        self._outward = None if same else torch.from_numpy(order)
        self._inward = None if same else torch.from_numpy(back)
        counts = np.bincount(texts, minlength=len(self._sizes)).tolist()
        self.grids, start = [], 0
        for group in self.groups:
            rows = [counts[text] for text in group.texts]
            if rows:
                self.grids.append(grid_of(rows, start, torch.device("cpu")))
                start += self.grids[-1].count
        self.groups = [group for group in self.groups if group.texts]
        self.source_masks = []  # made anew in the next pass

    def _join(self) -> None:
        """Put a copy of its source in front of what each live row has written.

        One product over both is faster than two whose scores meet in one softmax.
        """
        self.joined = max(group.width for group in self.groups)
        places = {text: n for group in self.groups for n, text in enumerate(group.texts)}
        index = [
            np.array([places[text] for text in self._texts[grid.start : grid.start + grid.count]])
            for grid in self.grids
        ]
        for layer in self._layers:
            layer.join([torch.from_numpy(part) for part in index])
        self.groups, self.grids, self.source_masks = [], [], []

    def _mask(self, like: Tensor) -> Tensor | None:
        """What the new rows may not see of the written part: -> (R or 1, H, n, m)."""
        width = self.places + self.new - self.first
        hidden = None
        if self.joined:
            padded = self._longest() - self._sizes[self._texts]
            if padded.any():
                hidden = np.arange(width) < padded[:, None, None, None]  # (R, 1, 1, m)
        if self.new > 1 or self.last_unseen:
            later = np.triu(np.ones((self.new, self.new), dtype=bool), k=1)
            later[-1, -1] = self.last_unseen
            after = np.pad(later, ((0, 0), (width - self.new, 0)))
            hidden = after[None, None] if hidden is None else hidden | after
        if hidden is None:
            return None
        return _added(np.repeat(hidden, self.heads, axis=1), like)

    def _positions(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Positions of the new rows (R, n) and of all places (R, m), by slot."""
        places = np.arange(self.first, self.places + self.new) - self.joined
        sizes = self._sizes[self._texts] if self.own else np.zeros(self.rows, np.int64)
        keys = torch.from_numpy(places + sizes[:, None]).to(device)
        return keys[:, -self.new :], keys


def _source_mask(group: SourceGroup, sizes: Numbers, heads: int, like: Tensor) -> Tensor | None:
    """What stands in front of the shorter sources of a group: -> (b, H, 1, S)."""
    padded = group.width - sizes[group.texts]
    if not padded.any():
        return None
    hidden = np.arange(group.width) < padded[:, None, None, None]
    return _added(np.repeat(hidden, heads, axis=1), like)


def _added(hidden: np.ndarray, like: Tensor) -> Tensor:
    """A mask as numbers that are added to scores."""
    zeros = like.new_zeros(hidden.shape)
    return zeros.masked_fill_(torch.from_numpy(hidden).to(like.device), float("-inf"))


def _turned(rows: Tensor, index: Tensor | None) -> Tensor:
    if index is None:
        return rows
    index = index.to(rows.device)
    if len(index) == len(rows):
        return rows.index_select(0, index)
    return rows.view(len(index), -1, rows.shape[-1]).index_select(0, index).flatten(0, 1)
