"""Decoder: causal self-attention over what is written, cross-attention to a memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.attention_plan import attention_plan
from bertsmith.nn.block import DecoderBlock
from bertsmith.nn.cache.cache import Cache
from bertsmith.nn.cache.steps import BlockStep
from bertsmith.nn.embeddings import Embeddings
from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import FULL, Causal, Full, Layout, Sees


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
        With a `cache`, each pass adds as many rows to every text, and only the first one needs the
        memory. `cache.advance` ends a pass.
        """
        inputs = replace(inputs, layout=replace(inputs.layout, sees=Causal()))
        inputs.check()
        if (memory is None or memory_layout is None) and (cache is None or not cache.begun):
            raise TextError("a decoder needs the rows of a memory and their layout")
        past = 0 if cache is None else max(cache.lengths, default=0)
        self.embeddings.check_room(inputs.layout, past)
        hidden: Tensor = self.embeddings(inputs)
        if cache is not None:
            if not isinstance(sees_memory, Full):
                raise TextError("a decoder with a cache attends to its whole memory")
            if not cache.begun and memory_layout is not None:
                cache.open(memory_layout, own=False)
            hidden = cache.run(hidden, inputs.layout, memory=memory)
            return hidden if self.norm is None else self.norm(hidden)
        plan = attention_plan(inputs.layout)
        cross_plan = attention_plan(inputs.layout, memory_layout, sees=sees_memory)
        for block in self.blocks:
            hidden = block(hidden, memory, plan, cross_plan)
        return hidden if self.norm is None else self.norm(hidden)

    def cache(self) -> Cache:
        """An empty cache for texts that this decoder will write."""
        blocks = [cast(DecoderBlock, block) for block in self.blocks]
        return Cache([BlockStep(block.block, block) for block in blocks])
