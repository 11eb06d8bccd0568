"""A block as plain functions, for passes over the few new rows of texts under way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.errors import TextError
from bertsmith.nn.cache.layer import LayerCache
from bertsmith.nn.matmul_backends import is_plain, linear_together

if TYPE_CHECKING:
    from bertsmith.nn.attention import Attention
    from bertsmith.nn.block import Block, DecoderBlock

Function = Callable[[Tensor], Tensor]


class BlockStep:
    """What a block does to new rows, whose keys and values a cache holds.

    With few rows, calling modules costs as much as their products: half of the time of a step of a
    single text. The functions are those of the modules, looked up once.
    """

    def __init__(self, block: Block, decoder: DecoderBlock | None = None) -> None:
        """The step of a block or, with `decoder`, of a decoder block around it."""
        self.heads = block.attention.heads
        self.attend = _SelfStep(block.attention)
        self.norm = _norm(block.attention_norm)
        self.across = None if decoder is None else _CrossStep(decoder.cross_attention)
        self.across_norm = self.norm if decoder is None else _norm(decoder.cross_norm)
        self.up, self.down = _linear(block.feed_forward.up), _linear(block.feed_forward.down)
        self.activation = block.feed_forward.activation_in_place
        self.feed_norm = _norm(block.feed_forward_norm)
        self.before = block.norm == "before"

    def __call__(self, hidden: Tensor, memory: Tensor | None, layer: LayerCache) -> Tensor:
        """(N, D) -> (N, D); `memory` (S, D) where the cache does not have it yet."""
        if self.before:
            hidden = self.attend(self.norm(hidden), layer).add_(hidden)
            if self.across is not None:
                hidden = self.across(self.across_norm(hidden), memory, layer).add_(hidden)
            change = self.down(self.activation(self.up(self.feed_norm(hidden))))
            return change.add_(hidden)
        hidden = self.norm(self.attend(hidden, layer).add_(hidden))
        if self.across is not None:
            hidden = self.across_norm(self.across(hidden, memory, layer).add_(hidden))
        change = self.down(self.activation(self.up(hidden)))
        return self.feed_norm(change.add_(hidden))


class _SelfStep:
    def __init__(self, attention: Attention) -> None:
        self.query, self.key = _linear(attention.query), _linear(attention.key)
        self.value, self.output = _linear(attention.value), _linear(attention.output)
        self.bound = attention.bound

    def __call__(self, hidden: Tensor, layer: LayerCache) -> Tensor:
        """New rows attend to those before them and to themselves: (N, D) -> (N, D)."""
        parts = (self.query(hidden), self.key(hidden), self.value(hidden))
        return self.output(layer.attend(*parts, self.bound))


class _CrossStep:
    def __init__(self, attention: Attention) -> None:
        self.query, self.output = _linear(attention.query), _linear(attention.output)
        self._sources = (attention.key, attention.value)

    def __call__(self, hidden: Tensor, memory: Tensor | None, layer: LayerCache) -> Tensor:
        """New rows attend to their source: (N, D) -> (N, D)."""
        if not layer.has_source:
            if memory is None:
                raise TextError("cross-attention needs a memory, and the cache has none yet")
            layer.remember(linear_together(memory, self._sources))
        return self.output(layer.attend_across(self.query(hidden)))


def _linear(layer: nn.Linear) -> Function:
    if not is_plain(layer):
        return layer  # a hook, or another kind of layer
    return partial(F.linear, weight=layer.weight, bias=layer.bias)


def _norm(layer: nn.LayerNorm) -> Function:
    if type(layer) is not nn.LayerNorm or layer._forward_hooks or layer._forward_pre_hooks:
        return layer
    shape, eps = tuple(layer.normalized_shape), layer.eps
    return partial(
        torch.layer_norm, normalized_shape=shape, weight=layer.weight, bias=layer.bias, eps=eps
    )
