"""Tiny models with every weight random, and their tokenizer, for the folder tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from tiny_models import randomized, shrunk

from bertsmith.models.build import Model, build
from bertsmith.models.spec import Spec
from bertsmith.models.variant import Head
from bertsmith.text.tokenizer import Tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklm", "字", "词"]


def tiny_spec(variant: str = "bert", **changes: object) -> Spec:
    spec = shrunk(variant, vocab_size=len(WORDS), hidden=16, heads=2, rows=24)
    return replace(spec, **changes)


def tiny_model(variant: str = "bert", heads: Sequence[str | Head] = (), **changes: object) -> Model:
    return randomized(build(variant, tiny_spec(variant, **changes), heads=heads), seed=7)


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
