"""Orders of texts, what they hide, and a program that learns from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from program_cases import Builder, case, pairs

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.nn.layout import Ordered, picture, visibility
from bertsmith.objectives.permuted_lm import PermutationProgram, PermutationSettings, queried
from bertsmith.random_keys import hashes, key_of


def texts(lengths: tuple[int, ...] = (23, 5, 64, 1, 40), first: int = 0) -> RowsBatch:
    """Random words of one or two pieces, `<sep> <cls>` at the end; keys by the number of a text."""
    total = sum(lengths)
    random = np.random.default_rng(3)
    words = np.cumsum(random.random(total) < 0.7).astype(np.int32)
    ends = np.cumsum(lengths)
    words[ends - 1] = -1
    words[[end - 2 for end, size in zip(ends, lengths, strict=True) if size > 2]] = -1
    return RowsBatch(
        ids=random.integers(9, 60, total).astype(np.int32),
        segments=np.zeros(total, np.int32),
        words=words,
        lengths=lengths,
        keys=hashes(key_of(0, "text"), first + np.arange(len(lengths))),
    )


def test_orders_are_bijections_and_blocks_stay_in_place() -> None:
    made = PermutationProgram(PermutationSettings(block=16))
    rows = texts()
    order = made.order(rows)
    for text, start in enumerate(rows.starts):
        part = order[start : start + rows.lengths[text]]
        assert sorted(part) == list(range(len(part)))
        assert (part // 16 == np.arange(len(part)) // 16).all()
    assert (order != rows.places).mean() > 0.7


@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=6),
    st.integers(2, 64),
    st.integers(0, 2**32),
)
def test_any_order_is_a_bijection_that_leaks_nothing_and_is_the_same_on_two_ranks(
    lengths: list[int], block: int, seed: int
) -> None:
    made = PermutationProgram(PermutationSettings(block=block))
    rows = texts(tuple(lengths), first=seed)
    order, predicted = made.order(rows), made.predicted(rows)
    sees = made.prepare(rows).inputs.layout.sees
    assert isinstance(sees, Ordered)
    content = visibility(sees, lengths).numpy()
    for text, start in enumerate(rows.starts):
        size = lengths[text]
        own, chosen = order[start : start + size], predicted[start : start + size]
        real = rows.real[start : start + size]
        assert sorted(own) == list(range(size)), "a bijection"
        assert (own // block == np.arange(size) // block).all(), "blocks and ends stay in place"
        assert not (chosen & ~real).any(), "<sep> and <cls> are never predicted"
        later = own[:, None] < own[None, :]  # i comes before j
        hidden = (chosen | ~real)[None, :] & later
        assert not content[text, :size, :size][hidden].any(), "nothing later is seen"
        alone = RowsBatch(
            ids=rows.ids[start : start + size],
            segments=rows.segments[start : start + size],
            words=rows.words[start : start + size],
            lengths=(size,),
            keys=rows.keys[text : text + 1],
        )
        assert (made.order(alone) == own).all(), "whatever stands next to it"
        assert (made.predicted(alone) == chosen).all()
    assert (made.order(texts(tuple(lengths), first=seed)) == order).all(), "the same seed"


def test_the_order_of_a_text_does_not_depend_on_batch_or_rank() -> None:
    made = PermutationProgram(PermutationSettings(block=16))
    whole = texts((20, 20, 20, 20))
    for rank in range(2):  # every second text each
        kept = whole.texts % 2 == rank
        half = RowsBatch(
            ids=whole.ids[kept],
            segments=whole.segments[kept],
            words=whole.words[kept],
            lengths=(20, 20),
            keys=whole.keys[rank::2],
        )
        assert (made.order(half) == made.order(whole)[kept]).all()
        assert (made.predicted(half) == made.predicted(whole)[kept]).all()
    other = replace(whole, keys=whole.keys + np.uint64(1))
    assert (made.order(other) != made.order(whole)).any()


def test_a_sixth_is_predicted_in_whole_words_and_never_a_special_token() -> None:
    made = PermutationProgram(PermutationSettings())
    rows = texts((120,) * 60)
    chosen = made.predicted(rows)
    assert not chosen[~rows.real].any()
    assert 0.14 < chosen[rows.real].mean() < 0.19
    for word in np.unique(rows.words[rows.real]):
        assert (
            len(set(chosen[rows.words == word])) == 1
            or len(set(rows.texts[rows.words == word])) > 1
        )


def test_nothing_is_seen_that_is_later_in_the_order() -> None:
    made = PermutationProgram(PermutationSettings(block=16))
    batch = made.prepare(texts())
    sees = batch.inputs.layout.sees
    assert isinstance(sees, Ordered)
    content = visibility(sees, batch.inputs.layout.lengths)
    queries = visibility(Ordered(sees.ranks, strict=True), batch.inputs.layout.lengths)
    for text, size in enumerate(batch.inputs.layout.lengths):
        rank = sees.ranks[text, :size]
        for i in range(size):
            for j in range(size):
                seen = bool(rank[j] < 0 or rank[j] < rank[i])
                assert content[text, i, j] == (seen or i == j)
                assert queries[text, i, j] == (seen and i != j)


def test_a_picture_of_an_order() -> None:
    ranks = torch.tensor([[-1, 2, -1, 0, 3]])
    assert picture(visibility(Ordered(ranks), [5])) == ["#.#..", "####.", "#.#..", "#.##.", "#####"]


def _blind() -> tuple[PermutationProgram, torch.nn.Module, object]:
    made, module = case("permutation")
    return made, module.eval(), made.prepare(texts())


@torch.no_grad()
def test_a_prediction_is_not_moved_by_what_it_may_not_see() -> None:
    _, module, batch = _blind()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.3, generator=torch.Generator().manual_seed(4))
    before = queried(module, batch)
    layout, at = batch.inputs.layout, batch.targets.at
    rank = torch.cat([layout.sees.ranks[n, :size] for n, size in enumerate(layout.lengths)])
    of = torch.arange(len(layout.lengths)).repeat_interleave(torch.tensor(layout.lengths))
    for changed in at.tolist()[::5]:
        ids = batch.inputs.ids.clone()
        ids[changed] = (ids[changed] + 7) % 60
        after = queried(module, replace(batch, inputs=replace(batch.inputs, ids=ids)))
        moved = (after - before).abs().amax(1) > 1e-6
        may = (of[at] == of[changed]) & (rank[at] > rank[changed])
        assert not moved[~may].any()  # the token itself is among them
        assert moved[may].all()


@torch.no_grad()
def test_a_query_that_sees_nothing_gets_no_context() -> None:
    made, module, _ = _blind()
    rows = texts((6,))
    rows = replace(rows, words=np.arange(6, dtype=np.int32))
    batch = made.prepare(rows)
    ranks = torch.tensor([[3, 0, 1, 2, 4, 5]])  # all predicted, the second comes first
    layout = replace(batch.inputs.layout, sees=Ordered(ranks))
    inputs = replace(batch.inputs, layout=layout)
    first = module.model.encoder(inputs, queries=torch.tensor([1])).queried
    other = replace(inputs, ids=(inputs.ids + 5) % 60)
    assert torch.equal(module.model.encoder(other, queries=torch.tensor([1])).queried, first)


def test_memory_comes_from_the_tokens_before_and_reaches_predictions_only() -> None:
    made = PermutationProgram(PermutationSettings(block=16, memory=12))
    batch = made.prepare(texts())
    assert batch.before.layout.lengths == (12, 0, 12, 0, 12)
    assert batch.inputs.layout.lengths == (11, 5, 52, 1, 28)
    assert batch.tokens == 23 + 5 + 64 + 1 + 40
    module = made.build(Builder("xlnet")).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0.0, 0.3, generator=torch.Generator().manual_seed(4))
    before = queried(module, batch)
    ids = batch.before.ids.clone()
    ids[0] = (ids[0] + 7) % 60
    after = queried(module, replace(batch, before=replace(batch.before, ids=ids)))
    moved = (after - before).abs().amax(1) > 1e-6
    assert (moved == (batch.targets.at < 11)).all()


def test_a_token_is_learned_where_what_decides_it_comes_before_it_in_the_order() -> None:
    """Token 1 is a copy of token 4: its loss is low only where 4 is seen."""
    made, module = case("permutation")
    optimizer = torch.optim.Adam(module.parameters(), lr=6e-3)
    random = np.random.default_rng(0)
    losses = {True: [], False: []}
    for step in range(350):
        ids = random.integers(10, 18, (64, 6)).astype(np.int32)
        ids[:, 1] = ids[:, 4]
        rows = RowsBatch(
            ids=ids.ravel(),
            segments=np.zeros(384, np.int32),
            words=np.arange(384, dtype=np.int32),
            lengths=(6,) * 64,
            keys=hashes(key_of(step, "text"), np.arange(64)),
        )
        seen = random.random(64) < 0.5
        ranks = torch.full((64, 6), -1)
        ranks[:, 1] = 1
        ranks[:, 4] = torch.from_numpy(np.where(seen, 0, 2))
        batch = made.prepare(rows)
        layout = replace(batch.inputs.layout, sees=Ordered(ranks))
        at = torch.arange(64) * 6 + 1
        hidden = module.model.encoder(replace(batch.inputs, layout=layout), queries=at).queried
        logits = module.model.logits("language_model", hidden)
        each = torch.nn.functional.cross_entropy(
            logits, torch.from_numpy(ids[:, 1]).long(), reduction="none"
        )
        optimizer.zero_grad()
        each.mean().backward()
        optimizer.step()
        for kind in losses:
            losses[kind].append(float(each.detach()[torch.from_numpy(seen == kind)].mean()))
    assert np.mean(losses[True][-20:]) < 0.1
    assert np.mean(losses[False][-20:]) > 1.8  # log 8 = 2.08


def test_other_models_are_refused_by_name() -> None:
    made = PermutationProgram(PermutationSettings())
    with pytest.raises(ConfigError, match=r'model\.variant="xlnet"'):
        made.build(Builder("bert"))


def test_pairs_train() -> None:
    made, module = case("permutation")
    batch = made.prepare(pairs(16))
    losses, scores = module(batch)
    assert losses["permuted"].count == scores["permuted"].count == batch.targets.count > 0
    assert abs(float(losses["permuted"].sum) / batch.targets.count - np.log(60)) < 0.5
