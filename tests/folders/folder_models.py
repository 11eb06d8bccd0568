"""Tiny models with every weight random, and their tokenizer, for the folder tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from bertsmith.models.build import Model, build
from bertsmith.models.spec import Learned, Spec
from bertsmith.models.variant import Head
from bertsmith.models.variants import VARIANTS
from bertsmith.text.tokenizer import Tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklm", "字", "词"]


def tiny_spec(variant: str = "bert", **changes: object) -> Spec:
    spec = VARIANTS[variant].spec
    positions = spec.positions
    if isinstance(positions, Learned):
        positions = Learned(rows=24 + positions.first, first=positions.first)
    return replace(
        spec,
        vocab_size=len(WORDS),
        hidden=16,
        layers=2,
        heads=2,
        feed_forward=32,
        embedding=8 if spec.embedding != spec.hidden else 16,
        positions=positions,
        **changes,
    )


def tiny_model(variant: str = "bert", heads: Sequence[str | Head] = (), **changes: object) -> Model:
    model = build(variant, tiny_spec(variant, **changes), heads=heads)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model.eval()


def tiny_tokenizer() -> Tokenizer:
    return Tokenizer.from_files(
        {
            "vocab.txt": "\n".join(WORDS).encode(),
            "tokenizer_config.json": b'{"do_lower_case": true}',
        }
    )


def same_weights(one: Model, other: Model) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )
