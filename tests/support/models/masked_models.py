"""A tiny masked LM with every weight random, as a folder and as transformers reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from bertsmith.folders.write import save_model
from bertsmith.models import VARIANTS
from bertsmith.models.build import build
from bertsmith.text.tokenizer import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the man went to a store and bought ##s milk dog ##gy ran home . , ##ing walk".split()  # noqa: SIM905
SPARE = 5  # rows of the embedding that no token has


def tokenizer() -> Tokenizer:
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    tokens = dict.fromkeys([*SPECIALS, *WORDS, *letters, *(f"##{one}" for one in letters)])
    return Tokenizer.from_files(
        {
            "vocab.txt": "".join(f"{token}\n" for token in tokens).encode(),
            "tokenizer_config.json": b'{"do_lower_case": true}',
        }
    )


def masked_folder(path: Path, heads=("masked_lm",), variant: str = "bert") -> Path:
    known = tokenizer()
    spec = replace(
        VARIANTS[variant].spec,
        vocab_size=known.vocab_size + SPARE,
        hidden=32,
        embedding=32,
        layers=2,
        heads=2,
        feed_forward=64,
    )
    rng = torch.Generator().manual_seed(3)
    model = build(variant, spec, heads=heads, generator=rng)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.empty_like(weight).normal_(0.0, 0.2, generator=rng))
    save_model(model, known, path)
    return path
