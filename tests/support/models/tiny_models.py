"""Every variant in a size for tests, with weights that hide nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import torch
from torch import nn

from bertsmith.models.positions import Learned
from bertsmith.models.spec import Spec
from bertsmith.models.variants import VARIANTS

Module = TypeVar("Module", bound=nn.Module)


def shrunk(variant: str, *, vocab_size: int, hidden: int, heads: int, rows: int) -> Spec:
    """The variant's own spec in two narrow layers; the embedding is factorized if it is there."""
    spec = VARIANTS[variant].spec
    positions = spec.positions
    if isinstance(positions, Learned):
        positions = Learned(rows=rows + positions.first, first=positions.first)
    decoder = spec.decoder
    if decoder is not None:
        decoder = replace(decoder, layers=2, heads=heads, feed_forward=2 * hidden)
    return replace(
        spec,
        vocab_size=vocab_size,
        hidden=hidden,
        layers=2,
        heads=heads,
        feed_forward=(4 if variant == "gpt" else 2) * hidden,  # GPT's config has no key for it
        embedding=hidden // 2 if spec.embedding != spec.hidden else hidden,
        positions=positions,
        decoder=decoder,
    )


def randomized(model: Module, seed: int = 0) -> Module:
    """Every weight random, biases and norms too, or a lost term hides behind a zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model.eval()
