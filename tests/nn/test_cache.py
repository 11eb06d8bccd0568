"""Decoding with a cache gives what one causal pass over the whole texts gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from torch import nn

from bertsmith.errors import TextError
from bertsmith.nn import (
    Causal,
    Dense,
    Encoder,
    Inputs,
    Layout,
    Prefix,
    Sees,
    attention_plan,
)
from bertsmith.nn.attention import Attention, AttentionTrace
from bertsmith.nn.block import Block, DecoderBlock
from bertsmith.nn.cache import rows as cache_rows
from bertsmith.nn.cache.cache import Cache
from bertsmith.nn.decoder import Decoder
from bertsmith.nn.embeddings import Embeddings, embedding_table
from bertsmith.nn.encoder import Want
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


def tokens(ids: Sequence[np.ndarray], past: Sequence[int], count: int) -> torch.Tensor:
    """The next `count` tokens of each text."""
    parts = [text[at : at + count] for text, at in zip(ids, past, strict=True)]
    return torch.from_numpy(np.concatenate(parts))


def more(model: Encoder, ids: Sequence[np.ndarray], cache: Cache, count: int) -> torch.Tensor:
    """A pass over the next `count` tokens of each text: -> (R, count, D)."""
    inputs = Inputs(tokens(ids, cache.lengths, count), cache.next_layout(count))
    hidden = model(inputs, cache=cache).hidden
    cache.advance()
    return hidden.view(len(ids), count, WIDTH)


@NORMS
@pytest.mark.parametrize("kind", [Causal, Prefix])
@pytest.mark.parametrize("relative", [False, True], ids=["learned", "relative"])
@torch.no_grad()
def test_pass_after_pass_equals_one_pass(norm: Norm, kind: type[Sees], relative: bool) -> None:
    model = make_encoder(norm, FunctionalPositions(3) if relative else None)
    whole_lengths = tuple(source + 5 for source in SOURCES)
    ids = ids_of(whole_lengths)
    sees, first = (Causal(), Causal()) if kind is Causal else (Prefix(SOURCES), Prefix(SOURCES))
    whole = model(
        Inputs(torch.from_numpy(np.concatenate(ids)), Layout.of(whole_lengths, sees=sees))
    ).hidden.split(whole_lengths)
    cache = model.cache()
    sources = torch.from_numpy(np.concatenate([ids[n][:size] for n, size in enumerate(SOURCES)]))
    last = torch.tensor(SOURCES).cumsum(0) - 1
    begun = model(Inputs(sources, Layout.of(SOURCES, sees=first)), rows=last, cache=cache).hidden
    assert cache.lengths == SOURCES
    rest = torch.cat([more(model, ids, cache, count) for count in (1, 2, 1, 1)], dim=1)
    for text, size in enumerate(SOURCES):
        torch.testing.assert_close(begun[text], whole[text][size - 1], **CLOSE)
        torch.testing.assert_close(rest[text], whole[text][size:], **CLOSE)


@torch.no_grad()
def test_rows_that_do_not_stay_leave_no_trace() -> None:
    model, ids = make_encoder("after"), ids_of((6, 6, 6))
    cache = model.cache()
    model(Inputs(tokens(ids, (0, 0, 0), 2), Layout.of((2, 2, 2), sees=Causal())), cache=cache)
    wrong = Inputs(torch.zeros(3, dtype=torch.long), cache.next_layout())
    model(wrong, cache=cache)
    cache.advance(0)
    right = more(model, ids, cache, 2)
    inputs = Inputs.of(np.concatenate([text[:4] for text in ids]), (4, 4, 4), sees=Causal())
    torch.testing.assert_close(right, model(inputs).hidden.view(3, 4, WIDTH)[:, 2:], **CLOSE)


@NORMS
@torch.no_grad()
def test_a_decoder_with_a_cache_equals_one_pass(norm: Norm) -> None:
    model, ids = make_decoder(norm), ids_of((6, 6, 6))
    memory = torch.randn(sum(SOURCES), WIDTH, generator=torch.Generator().manual_seed(2))
    source = Layout.of(SOURCES)
    whole = model(Inputs.of(np.concatenate(ids), (6, 6, 6)), memory, source).view(3, 6, WIDTH)
    cache = model.cache()
    begun = model(
        Inputs.of(tokens(ids, (0,) * 3, 2).numpy(), (2, 2, 2)), memory, source, cache=cache
    )
    cache.advance()
    parts = [begun.view(3, 2, WIDTH)]
    for _ in range(4):  # the memory is in the cache
        inputs = Inputs(tokens(ids, cache.lengths, 1), cache.next_layout())
        parts.append(model(inputs, cache=cache).view(3, 1, WIDTH))
        cache.advance()
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, **CLOSE)


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
@pytest.mark.parametrize("spare", [0, 256], ids=["groups", "one group"])
@torch.no_grad()
def test_rows_are_reordered_repeated_and_leave(
    norm: Norm, spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_rows, "SPARE_PLACES", spare)
    encoder, decoder = make_encoder(norm), make_decoder(norm)
    sources = ids_of((2, 3, 4, 3))
    sizes = (2, 3, 4, 3)
    memory = torch.randn(sum(sizes), WIDTH, generator=torch.Generator().manual_seed(2))
    own, crossed = encoder.cache(), decoder.cache()
    joined = torch.from_numpy(np.concatenate(sources))
    encoder(Inputs(joined, Layout.of(sizes, sees=Causal())), cache=own)
    begin = Inputs.of(np.array([5, 5, 5, 5]), (1,) * 4)
    decoder(begin, memory, Layout.of(sizes), cache=crossed)
    crossed.advance()
    texts, written = [0, 1, 2, 3], [[], [], [], []]
    random = np.random.default_rng(3)
    # Each source twice, the second leaves, beams change places, one beam of a source leaves.
    for order in ([0, 0, 1, 1, 2, 2, 3, 3], [7, 6, 0, 0, 5, 4], [1, 0, 2, 5, 4], [3, 0, 2], [1, 1]):
        own.keep(order)
        crossed.keep(order)
        texts, written = [texts[row] for row in order], [list(written[row]) for row in order]
        assert own.texts == crossed.texts == tuple(texts)
        new = random.integers(0, VOCAB, len(order))
        for row, token in zip(written, new.tolist(), strict=True):
            row.append(token)
        stepped = encoder(Inputs(torch.from_numpy(new), own.next_layout()), cache=own).hidden
        own.advance()
        decoded = decoder(Inputs(torch.from_numpy(new), crossed.next_layout()), cache=crossed)
        crossed.advance()
        for row, text in enumerate(texts):
            ids = np.concatenate([sources[text], written[row]]).astype(np.int64)
            alone = encoder(Inputs.of(ids, [len(ids)], sees=Causal())).hidden[-1]
            torch.testing.assert_close(stepped[row], alone, **CLOSE)
            ids = np.array([5, *written[row]])
            part = memory.split(sizes)[text]
            alone = decoder(Inputs.of(ids, [len(ids)]), part, Layout.of([sizes[text]]))[-1]
            torch.testing.assert_close(decoded[row], alone, **CLOSE)


def test_only_rows_that_change_their_place_are_copied() -> None:
    groups = cache_rows.source_groups((3, 3, 3))
    texts = np.array([0, 0, 1, 1, 2, 2])
    moves = cache_rows.rearranged(np.array([1, 1, 3, 2, 4, 5]), texts, groups)
    assert moves.to.tolist() == [0]  # the first beam takes what the second has
    assert moves.taken.tolist() == [1]
    assert moves.in_place
    assert moves.order.tolist() == [1, 0, 3, 2, 4, 5]
    moves = cache_rows.rearranged(np.array([2, 3, 4, 5]), np.array([0, 0, 1, 1, 2, 2]), groups)
    assert groups[0].texts == [2, 1]  # the last source takes the place of the first
    assert (moves.to.tolist(), moves.taken.tolist()) == ([0, 1], [4, 5])


@torch.no_grad()
def test_attention_to_itself_as_a_memory_is_self_attention() -> None:
    attention = drawn(Attention(WIDTH, 2))
    layout = Layout.of(LENGTHS)
    rows = torch.randn(layout.rows, WIDTH, generator=torch.Generator().manual_seed(2))
    square, other = AttentionTrace(), AttentionTrace()
    alone = attention(rows, None, attention_plan.attention_plan(layout), trace=square)
    plan = attention_plan.attention_plan(layout, layout)
    crossed = attention(rows, rows, plan, trace=other)
    torch.testing.assert_close(alone, crossed, **CLOSE)
    torch.testing.assert_close(square.weights, other.weights, **CLOSE)


def test_what_a_cache_cannot_hold_is_refused() -> None:
    model, ids = make_encoder("after"), ids_of()
    cache = model.cache()
    sources = Inputs(torch.zeros(6, dtype=torch.long), Layout.of((2, 2, 2)))
    with pytest.raises(TextError, match="needs Causal or Prefix rows, not Full"):
        model(sources, cache=cache)
    with pytest.raises(TextError, match="cache is empty"):
        cache.keep([0])
    with pytest.raises(TextError, match="reads the sources alone"):
        model(replace(sources, layout=Layout.of((2, 2, 2), sees=Prefix((2, 1, 2)))), cache=cache)
    with pytest.raises(TextError, match="at least one token of each source"):
        cache.open(Layout.of((2, 0)), own=False)
    causal = replace(sources, layout=Layout.of((2, 2, 2), sees=Causal()))
    with pytest.raises(TextError, match="last rows only, without a head_mask"):
        model(causal, want=Want(attention=True), cache=cache)
    model(causal, cache=cache)
    with pytest.raises(TextError, match="as many rows of each of its 3 live rows"):
        model(replace(causal, layout=Layout.of((3, 3), sees=Causal())), cache=cache)
    with pytest.raises(TextError, match="has its sources"):
        cache.open(Layout.of((1,)), own=False)
    cache = model.cache()
    model(Inputs(torch.zeros(12, dtype=torch.long), Layout.of([12], sees=Causal())), cache=cache)
    with pytest.raises(TextError, match="does not fit the 12 positions"):
        model(Inputs(torch.zeros(1, dtype=torch.long), cache.next_layout()), cache=cache)
    with pytest.raises(TextError, match="none to attend to"):
        attention_plan.attention_plan(Layout.of([1]), Layout.of([0]))
    decoder = make_decoder("after")
    with pytest.raises(TextError, match="needs the rows of a memory"):
        decoder(Inputs.of(ids[0], [5]), cache=decoder.cache())
    hides = Dense(torch.ones(1, 5, 5, dtype=torch.bool))
    with pytest.raises(TextError, match="attends to its whole memory"):
        decoder(
            Inputs.of(ids[0], [5]),
            torch.zeros(5, WIDTH),
            Layout.of([5]),
            sees_memory=hides,
            cache=decoder.cache(),
        )
