"""Packed encoder: token ids in, one hidden state per token out, no padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.attention import AttentionTrace
from bertsmith.nn.attention_plan import AttentionPlan, attention_plan
from bertsmith.nn.block import Block
from bertsmith.nn.cache.cache import Cache
from bertsmith.nn.cache.steps import BlockStep
from bertsmith.nn.embeddings import Embeddings
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Causal, Full, Layout
from bertsmith.nn.positions import AttentionPositions, TermsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What to return besides the last hidden rows."""

    layers: bool = False
    attention: bool = False
    projections: bool = False  # queries, keys and values of every block, and its attention


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """What an encoder returns."""

    hidden: Tensor  # (T, D), or (P, D) when only some rows were wanted
    layers: tuple[Tensor, ...] | None = None  # N + 1 of (T, D): the embeddings and every block
    attention: tuple[Tensor, ...] | None = None  # N of (B, H, M, M), zero outside of a text
    projections: tuple[AttentionTrace, ...] | None = None  # N, with `attention` as their weights
    queried: Tensor | None = None  # (P, D) of a second stream, see `nn.relative`


class Encoder(nn.Module):
    """Embeddings, blocks and, for some models, a pooler over the first token of a text.

    `positions` are those inside attention; `norm` is the last norm of pre-norm models. A `causal`
    encoder reads a layout that sees everything as one that sees what stands before.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        blocks: Sequence[Block],
        *,
        pooler: nn.Linear | None = None,
        positions: AttentionPositions | None = None,
        norm: nn.LayerNorm | None = None,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.blocks = nn.ModuleList(blocks)
        self.pooler = pooler
        self.positions = positions
        self.norm = norm
        self.causal = causal
        attentions = [block.attention for block in blocks]
        self.heads = max(one.heads for one in attentions)  # blocks may have fewer
        self.head_width = attentions[0].head_width

    def forward(
        self,
        inputs: Inputs,
        *,
        rows: Tensor | None = None,
        want: Want = Want(),  # noqa: B008 - frozen
        head_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Encoded:
        """Encode T rows; `rows` (P,) reads only those rows, `head_mask` (N, H) scales heads.

        H of `head_mask` is that of the block with the most heads; others read their first columns.

        With a `cache`, the first pass reads its sources, causal or a prefix; the rows of later
        passes continue their texts, as many in each. `cache.advance` ends such a pass.
        """
        if self.causal and isinstance(inputs.layout.sees, Full):
            inputs = replace(inputs, layout=replace(inputs.layout, sees=Causal()))
        self._check(inputs, head_mask, want, cache)
        hidden = self.embedded(inputs)
        if cache is not None and cache.begun:
            return Encoded(hidden=self._continued(hidden, inputs.layout, rows, cache))
        traced = want.attention or want.projections
        few = None if want.layers or traced else rows
        plan, last_plan = self._plans(self.marked(inputs), few, hidden, cache)
        layers, traces = [hidden], []
        for number, block in enumerate(cast(Sequence[Block], self.blocks)):
            trace = AttentionTrace(want.projections) if traced else None
            hidden = block(
                hidden,
                last_plan if number == len(self.blocks) - 1 else plan,
                cache=None if cache is None else cache.layer(number),
                head_mask=None if head_mask is None else head_mask[number, : block.attention.heads],
                trace=trace,
            )
            if want.layers:
                layers.append(hidden)
            if trace is not None:
                traces.append(trace)
        if self.norm is not None:
            hidden = self.norm(hidden)
            layers[-1] = hidden if want.layers else layers[-1]
        if last_plan.restore is not None:
            hidden = hidden.index_select(0, last_plan.restore)
        elif rows is not None:
            hidden = hidden.index_select(0, rows)
        return Encoded(
            hidden=hidden,
            layers=tuple(layers) if want.layers else None,
            attention=tuple(one.weights for one in traces) if traced else None,
            projections=tuple(traces) if want.projections else None,
        )

    def embedded(self, inputs: Inputs) -> Tensor:
        """What the first block reads: T rows of inputs -> (T, D)."""
        return self.embeddings(inputs)  # type: ignore[no-any-return]

    def marked(self, inputs: Inputs) -> Layout:
        """The layout with all that attention itself reads of a row: here its position."""
        return inputs.layout

    def pool(self, first: Tensor) -> Tensor:
        """The pooled output of first-token rows: (B, D) -> (B, D)."""
        if self.pooler is None:
            raise TextError("this model has no pooler; pool its rows instead")
        return torch.tanh(self.pooler(first))

    def _plans(
        self, layout: Layout, rows: Tensor | None, hidden: Tensor, cache: Cache | None
    ) -> tuple[AttentionPlan, AttentionPlan]:
        """How blocks attend, and how the last one does, of which only `rows` (P,) may be read."""
        terms = self.terms_of(hidden)
        if cache is not None:
            cache.open(layout, own=True)
        plan = attention_plan(layout, terms=terms)
        return plan, plan if rows is None else attention_plan(layout, rows=rows, terms=terms)

    def cache(self) -> Cache:
        """An empty cache for texts that this encoder will continue."""
        return Cache([BlockStep(cast(Block, block)) for block in self.blocks])

    def _continued(
        self, hidden: Tensor, layout: Layout, rows: Tensor | None, cache: Cache
    ) -> Tensor:
        """A later pass with a cache, over embedded rows (N, D)."""
        hidden = cache.run(hidden, layout, terms=self.terms_of(hidden))
        hidden = hidden if rows is None else hidden.index_select(0, rows)
        return hidden if self.norm is None else self.norm(hidden)

    def terms_of(self, hidden: Tensor) -> TermsOf | None:
        """Positions inside attention of rows like these."""
        if self.positions is None:
            return None
        return self.positions.of_batch(self.head_width, device=hidden.device, dtype=hidden.dtype)

    def _check(
        self, inputs: Inputs, head_mask: Tensor | None, want: Want, cache: Cache | None
    ) -> None:
        """Refuse by name what torch would refuse in numbers, or not at all."""
        inputs.check()
        if cache is not None and (head_mask is not None or want != Want()):
            raise TextError("a pass with a cache gives its last rows only, without a head_mask")
        if head_mask is not None:
            heads = (len(self.blocks), self.heads)
            if tuple(head_mask.shape) != heads:
                raise TextError(f"head_mask must be {heads}, not {tuple(head_mask.shape)}")
        past = 0 if cache is None else max(cache.lengths, default=0)
        self.embeddings.check_room(inputs.layout, past)
