"""Decoding with a cache gives what one causal pass over the whole texts gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from torch import nn

from bertsmith.errors import TextError
from bertsmith.nn import Causal, Dense, Encoder, Full, Inputs, Layout, Prefix, Sees, attention_plan
from bertsmith.nn.attention import Attention
from bertsmith.nn.block import Block, DecoderBlock
from bertsmith.nn.cache import Cache
from bertsmith.nn.decoder import Decoder
from bertsmith.nn.embeddings import Embeddings, embedding_table
from bertsmith.nn.feed_forward import FeedForward
from bertsmith.nn.positions import AttentionPositions, FunctionalPositions

CLOSE = {"rtol": 0.0, "atol": 1e-5}
LENGTHS = (5, 3, 7)
SOURCES = (2, 3, 4)
LAYERS, WIDTH, VOCAB = 2, 16, 30
Norm = Literal["after", "before"]
NORMS = pytest.mark.parametrize("norm", ["after", "before"])


@pytest.fixture(params=[0, 24], ids=["runs", "grids"], autouse=True)
def padding(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(attention_plan.SPARE, "cpu", request.param)


def drawn(module: nn.Module) -> nn.Module:
    random = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.4, generator=random)
    return module.eval()


def blocks(norm: Norm) -> list[Block]:
    return [
        Block(
            Attention(WIDTH, 2),
            nn.LayerNorm(WIDTH),
            FeedForward(WIDTH, 24),
            nn.LayerNorm(WIDTH),
            norm=norm,
        )
        for _ in range(LAYERS)
    ]


def last(norm: Norm) -> nn.LayerNorm | None:
    return nn.LayerNorm(WIDTH) if norm == "before" else None


def make_encoder(norm: Norm, positions: AttentionPositions | None = None) -> Encoder:
    embeddings = Embeddings(embedding_table(VOCAB, WIDTH), rows=0 if positions else 12)
    return drawn(Encoder(embeddings, blocks(norm), positions=positions, norm=last(norm)))


def make_decoder(norm: Norm) -> Decoder:
    made = [DecoderBlock(one, Attention(WIDTH, 2), nn.LayerNorm(WIDTH)) for one in blocks(norm)]
    return drawn(Decoder(Embeddings(embedding_table(VOCAB, WIDTH), rows=12), made, norm=last(norm)))


def ids_of(lengths: tuple[int, ...] = LENGTHS) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.integers(0, VOCAB, length) for length in lengths]


def part(ids: list[np.ndarray], cache: Cache, lengths: list[int], sees: Sees) -> Inputs:
    """The next `lengths` tokens of each text."""
    past = cache.lengths or (0,) * len(ids)
    chosen = [text[at : at + more] for text, at, more in zip(ids, past, lengths, strict=True)]
    return Inputs(torch.from_numpy(np.concatenate(chosen)), cache.next_layout(lengths, sees))


def stepwise(
    model: Encoder, ids: list[np.ndarray], first: list[int], sees: Sees
) -> list[torch.Tensor]:
    """Hidden rows of each text, `first` tokens at once and then one by one until each is done."""
    cache = Cache(LAYERS)
    rows: list[list[torch.Tensor]] = [[] for _ in ids]
    lengths = first
    while any(lengths):
        hidden = model(part(ids, cache, lengths, sees), cache=cache).hidden
        for own, piece in zip(rows, hidden.split(lengths), strict=True):
            own.append(piece)
        lengths = [int(at < len(text)) for at, text in zip(cache.lengths, ids, strict=True)]
    return [torch.cat(own) for own in rows]


@NORMS
@pytest.mark.parametrize("sees", [Causal(), Prefix(SOURCES)], ids=["causal", "prefix"])
@pytest.mark.parametrize("relative", [False, True], ids=["learned", "relative"])
@torch.no_grad()
def test_step_by_step_equals_one_pass(norm: Norm, sees: Sees, relative: bool) -> None:
    model = make_encoder(norm, FunctionalPositions(3) if relative else None)
    ids = ids_of()
    whole = model(Inputs(torch.from_numpy(np.concatenate(ids)), Layout.of(LENGTHS, sees=sees)))
    first = [1, 1, 1] if isinstance(sees, Causal) else list(SOURCES)
    for alone, expected in zip(
        stepwise(model, ids, first, sees), whole.hidden.split(LENGTHS), strict=True
    ):
        torch.testing.assert_close(alone, expected, **CLOSE)


@NORMS
@torch.no_grad()
def test_a_decoder_with_a_cache_equals_one_pass(norm: Norm) -> None:
    model, ids = make_decoder(norm), ids_of()
    memory = torch.randn(sum(SOURCES), WIDTH, generator=torch.Generator().manual_seed(2))
    source = Layout.of(SOURCES)
    inputs = Inputs.of(np.concatenate(ids), LENGTHS)
    whole = model(inputs, memory, source).split(LENGTHS)
    cache = Cache(LAYERS)
    begun = model(part(ids, cache, [2, 1, 3], Causal()), memory, source, cache=cache)
    rest = model(part(ids, cache, [3, 2, 4], Causal()), cache=cache)  # the memory is in the cache
    for parts in zip(begun.split([2, 1, 3]), rest.split([3, 2, 4]), whole, strict=True):
        torch.testing.assert_close(torch.cat(parts[:2]), parts[2], **CLOSE)


@NORMS
@torch.no_grad()
def test_a_decoder_attends_to_its_own_text_of_the_memory_only(norm: Norm) -> None:
    model, ids = make_decoder(norm), ids_of()
    memory = torch.randn(sum(SOURCES), WIDTH, generator=torch.Generator().manual_seed(2))
    together = model(Inputs.of(np.concatenate(ids), LENGTHS), memory, Layout.of(SOURCES))
    for text, alone in enumerate(together.split(LENGTHS)):
        own = memory.split(SOURCES)[text]
        inputs = Inputs.of(ids[text], LENGTHS[text : text + 1])
        single = model(inputs, own, Layout.of(SOURCES[text : text + 1]))
        torch.testing.assert_close(alone, single, **CLOSE)
        other = model(inputs, own + 1.0, Layout.of(SOURCES[text : text + 1]))
        assert (other - single).abs().max() > 1e-3
    hides = torch.ones(3, 7, 4, dtype=torch.bool)
    hides[0, :, 1] = False  # the second source row of the first text
    changed = memory.clone()
    changed[1] += 5.0
    hidden = [
        model(
            Inputs.of(np.concatenate(ids), LENGTHS),
            rows,
            Layout.of(SOURCES),
            sees_memory=Dense(hides),
        )
        for rows in (memory, changed)
    ]
    torch.testing.assert_close(*hidden, **CLOSE)


@NORMS
@torch.no_grad()
def test_texts_are_reordered_repeated_and_leave(norm: Norm) -> None:
    model, ids = make_decoder(norm), ids_of((6, 6, 6))
    memory = torch.randn(sum(SOURCES), WIDTH, generator=torch.Generator().manual_seed(2))
    cache = Cache(LAYERS)
    model(part(ids, cache, [2, 3, 4], Causal()), memory, Layout.of(SOURCES), cache=cache)
    order = [2, 0, 2]  # the second text is finished, the third goes on twice
    cache.select(order)
    assert cache.lengths == (4, 2, 4)
    chosen = [ids[text] for text in order]
    chosen[2] = chosen[2][::-1].copy()
    chosen[2][:4] = ids[2][:4]
    stepped = model(part(chosen, cache, [2, 1, 1], Causal()), cache=cache).split([2, 1, 1])
    for text, at, hidden in zip(chosen, (4, 2, 4), stepped, strict=True):
        number = order[1] if at == 2 else 2
        inputs = Inputs.of(text[: at + len(hidden)], [at + len(hidden)])
        own = memory.split(SOURCES)[number]
        whole = model(inputs, own, Layout.of([len(own)]))
        torch.testing.assert_close(hidden, whole[at:], **CLOSE)
    cache.select([])
    assert cache.lengths == ()


@torch.no_grad()
def test_attention_to_itself_as_a_memory_is_self_attention() -> None:
    attention = drawn(Attention(WIDTH, 2))
    layout = Layout.of(LENGTHS)
    rows = torch.randn(layout.rows, WIDTH, generator=torch.Generator().manual_seed(2))
    alone, square = attention(rows, None, attention_plan.attention_plan(layout), probabilities=True)
    plan = attention_plan.attention_plan(layout, layout)
    crossed, other = attention(rows, rows, plan, probabilities=True)
    torch.testing.assert_close(alone, crossed, **CLOSE)
    torch.testing.assert_close(square, other, **CLOSE)


def test_what_a_cache_cannot_hold_is_refused() -> None:
    model, ids = make_encoder("after"), ids_of()
    cache = Cache(LAYERS)
    with pytest.raises(TextError, match="needs Causal or Prefix rows, not Full"):
        model(part(ids, cache, [1, 1, 1], Full()), cache=cache)
    with pytest.raises(TextError, match="cache is empty"):
        cache.select([0])
    model(part(ids, cache, [1, 1, 1], Causal()), cache=cache)
    with pytest.raises(TextError, match="2 texts for a cache of 3"):
        cache.extend(Layout.of([1, 1], sees=Causal()))
    long = replace(cache.next_layout([1, 0, 0]), positions=torch.tensor([12]))
    cache = Cache(LAYERS)
    model(Inputs(torch.zeros(12, dtype=torch.long), Layout.of([12], sees=Causal())), cache=cache)
    with pytest.raises(TextError, match="does not fit the 12 positions"):
        model(Inputs(torch.zeros(1, dtype=torch.long), replace(long, lengths=(1,))), cache=cache)
    with pytest.raises(TextError, match="none to attend to"):
        attention_plan.attention_plan(Layout.of([1]), Layout.of([0]))
    with pytest.raises(TextError, match="needs the rows of a memory"):
        make_decoder("after")(Inputs.of(ids[0], [5]))
