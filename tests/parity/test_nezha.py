"""NEZHA, which no library in use has, against the paper's sums written as plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bertsmith.models import FunctionalRelative, Spec
from bertsmith.models.build import Model, build
from bertsmith.nn import Inputs, Layout, Want


def make(clip: int) -> Model:
    spec = Spec(
        vocab_size=40,
        hidden=12,
        layers=2,
        heads=2,
        feed_forward=20,
        embedding=12,
        positions=FunctionalRelative(clip=clip),
    )
    model = build("nezha", spec).double().eval()
    random = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float(name.endswith("norm.weight")), 0.4, generator=random)
    return model


def relation(distance: int, clip: int, width: int) -> list[float]:
    """The vector of a distance (equations 4 and 5 of the paper, table index as published)."""
    place = max(-clip, min(clip, distance)) + clip
    vector = []
    for column in range(width):
        angle = place / 10_000 ** (2 * (column // 2) / width)
        vector.append(math.sin(angle) if column % 2 == 0 else math.cos(angle))
    return vector


def attend(layer: torch.nn.Module, hidden: Tensor, clip: int) -> tuple[Tensor, list[Tensor]]:
    """Self-attention of one text with relations in keys and values, number by number."""
    query, key, value = layer.query(hidden), layer.key(hidden), layer.value(hidden)
    length, size = hidden.shape
    width = size // layer.heads
    context = torch.zeros_like(hidden)
    squares = []
    for head in range(layer.heads):
        part = slice(head * width, (head + 1) * width)
        square = torch.zeros(length, length, dtype=hidden.dtype)
        for i in range(length):
            scores = []
            for j in range(length):
                total = 0.0
                near = relation(j - i, clip, width)
                for n in range(width):
                    total += float(query[i, part][n]) * (float(key[j, part][n]) + near[n])
                scores.append(total / math.sqrt(width))
            peak = max(scores)
            parts = [math.exp(score - peak) for score in scores]
            for j in range(length):
                square[i, j] = parts[j] / sum(parts)
                near = relation(j - i, clip, width)
                for n in range(width):
                    context[i, head * width + n] += square[i, j] * (value[j, part][n] + near[n])
        squares.append(square)
    return layer.output(context), squares


@pytest.mark.parametrize(("clip", "lengths"), [(2, (6, 3)), (64, (5,)), (1, (1, 4))])
@torch.no_grad()
def test_nezha_equals_the_sums_of_the_paper(clip: int, lengths: tuple[int, ...]) -> None:
    model = make(clip)
    ids = torch.randint(0, 40, (sum(lengths),), generator=torch.Generator().manual_seed(4))
    layout = Layout.of(lengths)
    got = model(Inputs(ids, layout), want=Want(layers=True, attention=True))
    embeddings = model.encoder.embeddings
    for text, (start, length) in enumerate(zip(layout.starts, lengths, strict=True)):
        rows = slice(start, start + length)
        hidden = embeddings.norm(
            embeddings.tokens.weight[ids[rows]] + embeddings.segments.weight[0]
        )
        for number, block in enumerate(model.encoder.blocks):
            attended, squares = attend(block.attention, hidden, clip)
            hidden = block.attention_norm(hidden + attended)
            hidden = block.feed_forward_norm(hidden + block.feed_forward(hidden))
            torch.testing.assert_close(got.layers[number + 1][rows], hidden, rtol=0, atol=1e-6)
            for head, square in enumerate(squares):
                probabilities = got.attention[number][text, head, :length, :length]
                torch.testing.assert_close(probabilities, square, rtol=0, atol=1e-6)
    torch.testing.assert_close(model(Inputs(ids, layout)).hidden, got.hidden, rtol=0, atol=1e-9)


@torch.no_grad()
def test_nezha_has_no_limit_on_length() -> None:
    model = make(64)
    ids = torch.randint(0, 40, (1500,), generator=torch.Generator().manual_seed(4))
    assert model.spec.longest is None
    assert model(Inputs(ids, Layout.of([1500]))).hidden.isfinite().all()
