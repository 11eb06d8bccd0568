"""Small models with every weight random, one for each shape the native kernel claims to run."""

from dataclasses import replace

import numpy as np
import torch

from bertsmith.models import VARIANTS
from bertsmith.models.build import build

SHAPES = {
    "bert": {},
    "roberta": {},
    "electra": {"embedding": 32},
    "albert": {"embedding": 32, "sharing": "all"},
    "albert-attention": {"embedding": 32, "sharing": "attention"},
    "distilbert": {},
    "bert-relu": {"activation": "relu"},
    "bert-tanh-gelu": {"activation": "gelu_tanh"},
    "bert-silu": {"activation": "silu"},
    "bert-wide-heads": {"heads": 1},
}


def random_model(name):
    variant = name.split("-")[0]
    spec = replace(
        VARIANTS[variant].spec,
        **{
            "vocab_size": 211,
            "hidden": 96,
            "embedding": 96,
            "heads": 3,
            "layers": 3,
            "feed_forward": 160,
            **SHAPES[name],
        },
    )
    rng = torch.Generator().manual_seed(7)
    model = build(variant, spec, generator=rng).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.empty_like(weight).normal_(0.0, 0.1, generator=rng))
    return model


def random_texts(lengths, vocabulary=211):
    rng = np.random.default_rng(3)
    return [rng.integers(0, vocabulary, length, dtype=np.int32) for length in lengths]
