"""WKLM against plain loops: who is replaced by whom, what is predicted, what is masked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from program_cases import Builder, masking, tiny_entities
from torch.nn import functional as F

from bertsmith.corpus.rows import RowsBatch
from bertsmith.objectives.entities.mentions import Entities, Mentions
from bertsmith.objectives.entities.replaced import (
    DRAW,
    REPLACE,
    choose_mentions,
    replace_mentions,
)
from bertsmith.objectives.entities.wklm import ALIGNED, MLM, REPLACED, WklmProgram
from bertsmith.objectives.masking.replacement import SHOWN

CLOSE = {"rtol": 1e-5, "atol": 1e-5}
WORDS = range(5, 30)  # ids; those of the entities lie among them


def texts_of(lists: list[list[int]], *, longest: int | None = None, seed: int = 0) -> RowsBatch:
    """`[CLS] words [SEP]` of each list of ids, every token a word."""
    ids, words, count = [], [], 0
    for one in lists:
        ids += [2, *one, 3]
        words += [-1, *range(count, count + len(one)), -1]
        count += len(one)
    return RowsBatch(
        ids=np.array(ids, np.int32),
        segments=np.zeros(len(ids), np.int32),
        words=np.array(words, np.int32),
        lengths=tuple(len(one) + 2 for one in lists),
        keys=np.random.default_rng(seed).integers(0, 2**63, len(lists), dtype=np.uint64),
        longest=longest,
    )


def random_texts(count: int, seed: int, longest: int | None = None) -> RowsBatch:
    rng = np.random.default_rng(seed)
    lists = [rng.choice(WORDS, rng.integers(1, 18)).tolist() for _ in range(count)]
    return texts_of(lists, longest=longest, seed=seed)


def spelled(entities: Entities) -> list[list[int]]:
    """The tokens of each entity; the toy tokenizer has one form."""
    (form,) = entities.lexicon.forms
    return form


def looped(rows: RowsBatch, entities: Entities, rate: float) -> list[tuple[list[int], list[int]]]:
    """Ids and labels of each text: 1 replaced, 0 true, one label per mention."""
    names = spelled(entities)
    every = []
    for text, first in enumerate(rows.starts.tolist()):
        own = rows.ids[first : first + rows.lengths[text]].tolist()
        out: list[int] = []
        labels: list[int] = []
        at, before, room = 0, "none", (rows.longest or 10**9) - len(own)
        while at < len(own):
            fits = [n for n, ids in enumerate(names) if own[at : at + len(ids)] == ids]
            if not fits:
                out.append(own[at])
                at += 1
                continue
            entity = max(fits, key=lambda n: len(names[n]))
            size = len(names[entity])
            place = np.array([first + at])
            kind = entities.types[entity]
            others = [n for n in range(len(names)) if entities.types[n] == kind and n != entity]
            chance = (
                rate / (1 - rate) if before == "true" else 0.0 if before == "replaced" else rate
            )
            drawn = rows.uniforms(REPLACE, place)[0] < chance
            chosen = bool(others) and bool(drawn)
            fitting = [n for n in others if len(names[n]) <= size + room]
            label = int(chosen and bool(fitting))
            if label:
                fitting.sort(key=lambda n: (len(names[n]), n))
                other = fitting[int(rows.uniforms(DRAW, place)[0] * len(fitting))]
                out += names[other]
                room -= len(names[other]) - size
            else:
                out += own[at : at + size]
            # What was chosen and lacked room counts as chosen: its neighbors do not change.
            before = "none" if not others else "replaced" if chosen else "true"
            labels.append(label)
            at += size
        every.append((out, labels))
    return every


@pytest.mark.parametrize("spare", [None, 0, 2])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_replacement_equals_a_plain_loop(rate: float, spare: int | None) -> None:
    entities = tiny_entities()
    replaced = 0
    for seed in range(20):
        rows = random_texts(12, seed)
        if spare is not None:
            rows = random_texts(12, seed, max(rows.lengths) + spare)
        found = replace_mentions(rows, entities, rate)
        at = 0
        for text, (ids, labels) in enumerate(looped(rows, entities, rate)):
            first = int(found.rows.starts[text])
            assert found.rows.ids[first : first + found.rows.lengths[text]].tolist() == ids
            assert found.replaced[at : at + len(labels)].tolist() == [bool(n) for n in labels]
            at += len(labels)
            replaced += sum(labels)
        assert at == len(found.replaced)
    assert replaced > 30


@given(seed=st.integers(0, 10_000), rate=st.floats(0.01, 0.5), spare=st.integers(0, 12))
@settings(max_examples=80, deadline=None)
def test_types_match_neighbors_stay_lengths_hold_and_the_rest_is_untouched(
    seed: int, rate: float, spare: int
) -> None:
    entities = tiny_entities()
    rows = random_texts(6, seed)
    longest = max(rows.lengths) + spare
    rows = random_texts(6, seed, longest)
    found = replace_mentions(rows, entities, rate)
    mentions, names = found.mentions, spelled(entities)
    assert max(found.rows.lengths) <= longest
    assert sum(found.rows.lengths) == len(found.rows.ids)
    assert (entities.types[mentions.entities] == entities.types[found.originals]).all()
    assert ((mentions.entities != found.originals) == found.replaced).all()
    texts = found.rows.texts[mentions.starts]
    neighbors = found.replaced[1:] & found.replaced[:-1] & (texts[1:] == texts[:-1])
    assert not neighbors.any()
    assert not (found.replaced & ~entities.replaceable[found.originals]).any()
    # Written back, the texts are the same as before.
    ids, at = [], 0
    columns = (mentions.starts, mentions.stops, mentions.entities, found.originals)
    for start, stop, shown, own in zip(*columns, strict=True):
        assert found.rows.ids[start:stop].tolist() == names[shown]
        ids += [found.rows.ids[at:start].tolist(), names[own]]
        at = int(stop)
    ids.append(found.rows.ids[at:].tolist())
    assert [token for part in ids for token in part] == rows.ids.tolist()
    assert (found.rows.real == (found.rows.ids > 4)).all()


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_rate_is_exact_and_the_same_for_every_mention_of_a_text(rate: float) -> None:
    entities = tiny_entities()
    own = spelled(entities)[0]
    rows = texts_of([[*own, 29] * 5] * 20_000)
    found = replace_mentions(rows, entities, rate).replaced.reshape(20_000, 5)
    assert np.abs(found.mean(0) - rate).max() < 0.012  # 3.5 standard errors at .5


def test_a_mention_that_nothing_may_replace_does_not_lower_the_chance_of_its_neighbor() -> None:
    rows = texts_of([[10, 11, 12]] * 20_000)
    starts = np.flatnonzero(rows.real)
    ones = np.ones(len(starts), np.int64)
    mentions = Mentions(starts=starts, sizes=ones, entities=0 * ones, forms=0 * ones)
    allowed = np.tile([True, False, True], 20_000)
    found = choose_mentions(rows, mentions, allowed, 0.3).reshape(-1, 3).mean(0)
    assert found[1] == 0
    assert np.abs(found[[0, 2]] - 0.3).max() < 0.012


def program(*, mlm: float = 1.0, rate: float = 0.3, mask_rate: float = 0.05) -> WklmProgram:
    weights = dict.fromkeys([*([MLM] if mlm else []), REPLACED, ALIGNED], 1.0)
    made = masking(mask_rate) if mlm else None
    return WklmProgram(tiny_entities(), made, rate=rate, weights=weights, width=12)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_masks_stay_outside_of_mentions_and_targets_are_true(seed: int) -> None:
    made = program(mask_rate=0.2)
    rows = random_texts(6, seed)
    batch = made.prepare(rows)
    texts = replace_mentions(rows, made.entities, made.rate)
    inside = np.zeros(len(texts.rows.ids), bool)
    for start, stop in zip(texts.mentions.starts, texts.mentions.stops, strict=True):
        inside[start:stop] = True
    shown, read = batch.inputs.ids.numpy(), batch.texts.rows.numpy()
    changed = shown != texts.rows.ids
    assert not (changed & inside).any()
    mlm, replaced, aligned = (batch.texts.targets[name] for name in (MLM, REPLACED, ALIGNED))
    at = read[mlm.at.numpy()]
    assert not inside[at].any()
    assert (texts.rows.ids[at] == mlm.of.numpy()).all()
    assert np.isin(np.flatnonzero(changed), at).all()
    asked = np.flatnonzero(made.entities.replaceable[texts.originals])
    sides = [(texts.mentions.starts[n] - 1, texts.mentions.stops[n]) for n in asked]
    assert [tuple(pair) for pair in read[replaced.at.numpy()].reshape(-1, 2)] == sides
    assert replaced.of.tolist() == [int(texts.replaced[n]) for n in asked]
    true = np.flatnonzero(~texts.replaced)
    assert read[aligned.at.numpy()].tolist() == texts.mentions.starts[true].tolist()
    candidates = sorted(set(texts.originals.tolist()))
    assert batch.candidates.tolist() == candidates
    assert [candidates[n] for n in aligned.of] == texts.originals[true].tolist()


@torch.no_grad()
@pytest.mark.parametrize("given_too", [False, True])
def test_losses_equal_plain_loops(given_too: bool) -> None:
    made = program()
    if given_too:
        vectors = np.random.default_rng(1).normal(size=(len(made.entities.names), 7))
        known = np.arange(len(made.entities.names)) != 0
        made = WklmProgram(
            made.entities,
            made.masking,
            rate=0.3,
            weights=made.weights,
            vectors=(vectors.astype(np.float32), known),
        )
    module = made.build(Builder("bert")).eval()
    for parameter in module.parameters():
        parameter.normal_(std=0.2, generator=torch.Generator().manual_seed(parameter.numel()))
    rows = random_texts(10, 3)
    batch = made.prepare(rows)
    losses, scores = module(batch)
    hidden = module.model(batch.inputs).hidden
    texts = replace_mentions(rows, made.entities, made.rate)
    head, total, right, count = module.own_heads[REPLACED], 0.0, 0, 0
    for n in range(len(texts.replaced)):
        if not made.entities.replaceable[texts.originals[n]]:
            continue
        joined = torch.cat([hidden[texts.mentions.starts[n] - 1], hidden[texts.mentions.stops[n]]])
        row = F.gelu(head.dense.weight @ joined + head.dense.bias)
        row = F.layer_norm(row, row.shape, head.norm.weight, head.norm.bias, head.norm.eps)
        score = (head.score.weight @ row + head.score.bias)[0]
        label = float(texts.replaced[n])
        total += -F.logsigmoid(score if label else -score)
        right += int((score > 0) == bool(label))
        count += 1
    torch.testing.assert_close(losses[REPLACED].sum, torch.as_tensor(total), **CLOSE)
    assert (losses[REPLACED].count, int(scores[REPLACED].correct)) == (count, right)

    head, total, right, count = module.own_heads[ALIGNED], 0.0, 0, 0
    table = (
        torch.from_numpy(vectors).float()
        if given_too
        else next(iter(head.entities.values())).weight
    )
    mentioned = [e for e in sorted(set(texts.originals.tolist())) if made.known[e]]
    for n in np.flatnonzero(~texts.replaced):
        if texts.originals[n] not in mentioned:
            continue
        row = head.transform.weight @ hidden[texts.mentions.starts[n]] + head.transform.bias
        row = F.gelu(row)
        row = F.layer_norm(row, row.shape, head.norm.weight, head.norm.bias, head.norm.eps)
        dots = torch.stack([row @ table[entity] for entity in mentioned])
        place = mentioned.index(texts.originals[n])
        total += torch.logsumexp(dots, 0) - dots[place]
        right += int(dots.argmax() == place)
        count += 1
    torch.testing.assert_close(losses[ALIGNED].sum, torch.as_tensor(total), **CLOSE)
    assert (losses[ALIGNED].count, int(scores[ALIGNED].correct)) == (count, right)
    assert batch.candidates.tolist() == mentioned
    assert count > 5
    assert 0 in texts.originals  # the entity without a vector, if they are given


def test_given_vectors_are_neither_trained_nor_stored() -> None:
    made = program()
    vectors = np.ones((len(made.entities.names), 7), np.float32)
    known = np.ones(len(vectors), bool)
    given_too = WklmProgram(
        made.entities, None, rate=0.3, weights={ALIGNED: 1.0}, vectors=(vectors, known)
    )
    module = given_too.build(Builder("bert"))
    names = {name for name, _ in module.own_heads.named_parameters()}
    assert names == {
        f"aligned.{n}" for n in ("transform.weight", "transform.bias", "norm.weight", "norm.bias")
    }
    assert not [name for name in module.state_dict() if "given" in name]
    learned = made.build(Builder("bert")).own_heads[ALIGNED]
    (digest,) = learned.entities
    assert len(digest) == 12
    assert learned.entities[digest].weight.shape == (len(vectors), 12)


def test_texts_without_mentions_train_the_masked_lm_alone() -> None:
    made = program()
    module = made.build(Builder("bert"))
    batch = made.prepare(texts_of([[29, 28, 27], [28]]))
    assert batch.counts == {MLM: batch.counts[MLM], REPLACED: 0, ALIGNED: 0}
    losses, scores = module(batch)
    assert losses[MLM].count == batch.counts[MLM] > 0
    assert losses[REPLACED].sum.item() == losses[ALIGNED].sum.item() == 0.0
    assert scores[ALIGNED].count == 0
    sum(loss.sum for loss in losses.values()).backward()


def test_a_part_without_a_weight_is_neither_built_nor_done() -> None:
    entities = tiny_entities()
    rows = random_texts(8, 1)
    alone = WklmProgram(entities, None, rate=0.3, weights={REPLACED: 1.0})
    assert not alone.reads_batch
    batch = alone.prepare(rows)
    assert (batch.inputs.ids.numpy() == replace_mentions(rows, entities, 0.3).rows.ids).all()
    assert set(alone.build(Builder("bert")).own_heads) == {REPLACED}
    aligned = WklmProgram(entities, None, rate=0.0, weights={ALIGNED: 1.0})
    batch = aligned.prepare(rows)
    assert (batch.inputs.ids.numpy() == rows.ids).all()
    assert batch.counts[ALIGNED] == len(entities.find(rows).starts)


def test_the_account_counts_mentions_replaced_lone_and_without_room() -> None:
    made = program(rate=0.5)
    own = spelled(made.entities)
    lone = made.entities.names.index("w20")
    rows = texts_of([[*own[0], 29, *own[lone]], [29], [*own[0], 29, 28, 27]] * 200, longest=6)
    found = replace_mentions(rows, made.entities, 0.5)
    remarks = "\n".join(made.account([rows]))
    assert (
        f"600 mentions in the first 600 texts, of 2 entities; {found.replaced.sum()} re" in remarks
    )
    assert "200 mentions of types of one entity, not replaced" in remarks
    assert "1 (lone) types of one entity, never replaced" in remarks
    lacking = int(found.lacked_room.sum())
    assert (f"{lacking} mentions not replaced because no entity" in remarks) == bool(lacking)
    nothing = made.account([texts_of([[29, 28]])])
    assert nothing[-1].startswith("entities: none of them is mentioned in the first 1 text")


def test_replacing_masks_nothing_by_itself() -> None:
    rows = random_texts(8, 2)
    made = program()
    fates = made.masking(rows).fates
    assert (fates != SHOWN).any()
    batch = program(mlm=0.0).prepare(rows)
    assert 4 not in batch.inputs.ids.tolist()
