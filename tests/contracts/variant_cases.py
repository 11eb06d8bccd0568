"""A tiny model of every variant, with random weights, for the contracts."""

from __future__ import annotations

from dataclasses import replace

import torch

from bertsmith.models import VARIANTS, FunctionalRelative, Learned, Spec
from bertsmith.models.build import Model, build
from bertsmith.nn import Dense, Inputs, Layout, Sees
from bertsmith.nn.layout import FULL

LENGTHS = (4, 9, 9, 1, 6)


def tiny(variant: str) -> Spec:
    """The variant's own spec, small; a factorized embedding where the family can have one."""
    spec = VARIANTS[variant].spec
    positions = spec.positions
    if isinstance(positions, Learned):
        positions = replace(positions, rows=30 + positions.first)
    elif isinstance(positions, FunctionalRelative):
        positions = FunctionalRelative(clip=3)
    decoder = None
    if spec.decoder is not None:
        decoder = replace(spec.decoder, layers=2, heads=2, feed_forward=28)
    factorized = "embedding" in VARIANTS[variant].config.keys
    return replace(
        spec,
        vocab_size=50,
        hidden=24,
        layers=3,
        heads=4,
        feed_forward=40,
        embedding=12 if factorized else 24,
        positions=positions,
        dropout=0.1,
        attention_dropout=0.1,
        decoder=decoder,
    )


def random_model(variant: str, spec: Spec | None = None, heads: tuple[str, ...] = ()) -> Model:
    """A model whose biases and norms are random too."""
    random = torch.Generator().manual_seed(3)
    model = build(variant, spec or tiny(variant), heads=heads, generator=random)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean = 1.0 if name.endswith("norm.weight") else 0.0
            parameter.normal_(mean, 0.3, generator=random)
    return model.eval()


def batch(model: Model, lengths: tuple[int, ...] = LENGTHS, sees: Sees = FULL) -> Inputs:
    """Random ids and segments of texts with these lengths."""
    random = torch.Generator().manual_seed(5)
    rows = sum(lengths)
    ids = torch.randint(0, model.spec.vocab_size, (rows,), generator=random)
    segments = torch.randint(0, max(model.spec.segments, 1), (rows,), generator=random)
    return Inputs(ids, Layout.of(lengths, sees=sees), {"segments": segments})


def part_of(inputs: Inputs, text: int) -> Inputs:
    """One text of a batch alone."""
    start, length = inputs.layout.starts[text], inputs.layout.lengths[text]
    rows = slice(start, start + length)
    sees = inputs.layout.sees.take([text])
    if isinstance(sees, Dense):
        sees = Dense(sees.visible[:, :length, :length])
    layout = Layout((length,), inputs.layout.positions[rows], sees)
    return Inputs(
        inputs.ids[rows], layout, {name: part[rows] for name, part in inputs.channels.items()}
    )
