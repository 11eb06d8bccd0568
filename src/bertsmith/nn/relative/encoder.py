"""Encoder with relative attention: a content stream, a query stream and a memory (XLNet)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.attention_plan import AttentionPlan, attention_plan
from bertsmith.nn.block import Block
from bertsmith.nn.cache.cache import Cache
from bertsmith.nn.embeddings import Embeddings
from bertsmith.nn.encoder import Encoded, Encoder, Want
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.layout import (
    AfterMemory,
    Causal,
    Dense,
    Full,
    Layout,
    Ordered,
    Sees,
    visibility,
)
from bertsmith.nn.positions import AttentionPositions, TermsOf
from bertsmith.nn.relative.attention import StreamsPlan, memory_order

_LAYERS = Want(layers=True)


@dataclass(frozen=True, slots=True)
class Memory:
    """What the blocks read of the stretch before each text: N of (S, D), and how long each is."""

    layers: tuple[Tensor, ...]
    lengths: tuple[int, ...]


class RelativeEncoder(Encoder):
    """An encoder whose blocks attend by distance and segment, and which can ask about places.

    `query_row` (1, D) is what every query begins as: it knows its place, not the token there.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        blocks: Sequence[Block],
        *,
        positions: AttentionPositions,
        causal: bool = False,
    ) -> None:
        super().__init__(embeddings, blocks, positions=positions, causal=causal)
        self.query_row = nn.Parameter(torch.empty(1, embeddings.tokens.embedding_dim))

    def forward(
        self,
        inputs: Inputs,
        *,
        rows: Tensor | None = None,
        want: Want = Want(),  # noqa: B008 - frozen
        head_mask: Tensor | None = None,
        cache: Cache | None = None,
        queries: Tensor | None = None,
        memory: Memory | None = None,
        content: bool = False,
    ) -> Encoded:
        """As `Encoder.forward`; with `queries` (P,), as `streams`."""
        if queries is None and memory is None:
            return super().forward(inputs, rows=rows, want=want, head_mask=head_mask, cache=cache)
        if queries is None or not (rows is None and head_mask is None and cache is None):
            raise TextError("a pass with a memory needs queries, and takes no rows, mask or cache")
        return self.streams(inputs, queries, memory=memory, content=content)

    def embedded(self, inputs: Inputs) -> Tensor:
        """Token vectors: segments are read by attention."""
        return super().embedded(inputs.without(SEGMENTS))

    def marked(self, inputs: Inputs) -> Layout:
        """Positions side by side with segments (T, 2), where there are segments."""
        segments = inputs.channels.get(SEGMENTS)
        if segments is None:
            return inputs.layout
        positions = torch.stack([inputs.layout.positions, segments], dim=1)
        return replace(inputs.layout, positions=positions)

    def streams(
        self,
        inputs: Inputs,
        queries: Tensor,
        *,
        memory: Memory | None = None,
        content: bool = False,
    ) -> Encoded:
        """T content rows and P queries at the rows `queries` (P,): what stands there.

        A query sees what the content row at its place sees, but not that row. Content rows after
        the last block are computed only where `content` is wanted; else `hidden` is empty.
        """
        inputs.check()
        hidden = self.embedded(inputs)
        count = len(hidden)
        plan, restore = self._streams_plan(inputs, queries, memory, hidden)
        rows = torch.cat([hidden, self.query_row.expand(len(queries), -1).to(hidden.dtype)])
        last = replace(plan, content=None, rows=torch.arange(count, len(rows), device=rows.device))
        for number, block in enumerate(self.blocks):
            end = number == len(self.blocks) - 1 and not content
            own = last if end else plan
            if memory is not None:
                own = replace(own, memory=memory.layers[number].to(rows.dtype))
            rows = block(rows, own)
        if content:
            return Encoded(hidden=rows[:count], queried=rows[count:].index_select(0, restore))
        return Encoded(hidden=rows[:0], queried=rows.index_select(0, restore))

    @torch.no_grad()
    def memory(self, inputs: Inputs) -> Memory:
        """What the blocks read of these texts, to be seen by the texts that follow them."""
        layers = super().forward(inputs, want=_LAYERS).layers or ()
        return Memory(layers[:-1], inputs.layout.lengths)

    def _streams_plan(
        self, inputs: Inputs, queries: Tensor, memory: Memory | None, hidden: Tensor
    ) -> tuple[StreamsPlan, Tensor]:
        """How both streams attend, and what undoes the sorting of the queries by text."""
        layout, terms = self.marked(inputs), self.terms_of(hidden)
        sees: Sees = inputs.layout.sees
        if isinstance(sees, Full) and self.causal:
            sees = Causal()
        looked_at, order = layout, None
        if memory is not None:
            looked_at = _behind(layout, memory)
            order = memory_order(memory.lengths, layout.lengths, hidden.device)
        content = _plan(layout, looked_at, None, _after(sees, memory), terms)
        strict = _after(_strict(sees, layout.lengths, hidden.device), memory)
        asked = _plan(layout, looked_at, queries, strict, terms)
        restore = asked.restore if asked.restore is not None else torch.arange(len(queries))
        plan = StreamsPlan(
            groups=(),
            shape=content.shape,
            count=len(hidden),
            content=content,
            queries=asked,
            order=order,
        )
        return plan, restore.to(hidden.device)


def _plan(
    layout: Layout, keys: Layout, rows: Tensor | None, sees: Sees, terms: TermsOf | None
) -> AttentionPlan:
    return attention_plan(layout, keys, rows=rows, sees=sees, terms=terms)


def _after(sees: Sees, memory: Memory | None) -> Sees:
    """The same rows with a memory in front of their text, all of which they see."""
    if memory is None or isinstance(sees, Full):
        return sees
    return AfterMemory(sees, memory.lengths)


def _strict(sees: Sees, lengths: Sequence[int], device: torch.device) -> Sees:
    """The same without a row's own place."""
    if isinstance(sees, Ordered):
        return Ordered(sees.ranks, strict=True)
    itself = torch.eye(max(lengths, default=0), dtype=torch.bool)
    return Dense((visibility(sees.to("cpu"), lengths) & ~itself).to(device))


def _behind(layout: Layout, memory: Memory) -> Layout:
    """The layout of memory and text together; memory is of segment 0."""
    if len(memory.lengths) != len(layout.lengths):
        raise TextError(f"{len(memory.lengths)} memories for {len(layout.lengths)} texts")
    parts, start = [], 0
    for before, length in zip(memory.lengths, layout.lengths, strict=True):
        own = layout.positions[start : start + length]
        first = own[:1] if length else torch.zeros_like(layout.positions[:1])
        past = torch.arange(-before, 0, device=own.device)
        if own.dim() == 2:
            past = torch.stack([past, torch.zeros_like(past)], dim=1)
            first = first * torch.tensor([1, 0], device=own.device)
        parts += [past + first, own]
        start += length
    lengths = tuple(a + b for a, b in zip(memory.lengths, layout.lengths, strict=True))
    return Layout(lengths, torch.cat(parts))
