"""Decoder: causal self-attention over what is written, cross-attention to a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.attention_plan import attention_plan
from bertsmith.nn.block import DecoderBlock
from bertsmith.nn.cache import Cache
from bertsmith.nn.embeddings import Embeddings
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import FULL, Causal, Layout, Sees


class Decoder(nn.Module):
    """Embeddings and decoder blocks; `norm` is the last norm of pre-norm models."""

    def __init__(
        self,
        embeddings: Embeddings,
        blocks: Sequence[DecoderBlock],
        *,
        norm: nn.LayerNorm | None = None,
    ) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm

    def forward(
        self,
        inputs: Inputs,
        memory: Tensor | None = None,
        memory_layout: Layout | None = None,
        *,
        sees_memory: Sees = FULL,
        cache: Cache | None = None,
    ) -> Tensor:
        """Rows of B target texts and the memory (S, D) of their B source texts -> (T, D).

        Text b attends causally to itself and, as `sees_memory` says, to text b of the memory.
        With a `cache` the rows continue the texts in it; its later passes need no memory.
        """
        inputs = replace(inputs, layout=replace(inputs.layout, sees=Causal()))
        inputs.check(continues=cache is not None)
        source = memory_layout
        if cache is not None:
            source = cache.memory = cache.memory or memory_layout
        if source is None:
            raise TextError("a decoder needs the rows of a memory and their layout")
        layout = inputs.layout
        whole = layout if cache is None else cache.extend(layout)
        plan = attention_plan(layout, whole, sees=Causal(), tail=True)
        cross_plan = attention_plan(layout, source, sees=sees_memory)
        hidden: Tensor = self.embeddings(inputs)
        for number, block in enumerate(self.blocks):
            part = None if cache is None else cache.layer(number)
            hidden = block(hidden, memory, plan, cross_plan, cache=part)
        return hidden if self.norm is None else self.norm(hidden)
