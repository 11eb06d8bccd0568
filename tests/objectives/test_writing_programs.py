"""Programs of models that write: who sees whom, what is predicted, whether the source is read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from program_cases import Builder, case, noise, pairs, program, replacement
from torch.nn import functional as F

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.models.spec import DecoderSpec
from bertsmith.nn import Inputs, Prefix, picture, visibility
from bertsmith.objectives.denoise import DenoiseProgram
from bertsmith.objectives.masked_span import MaskedSpanProgram, MaskedSpanSettings
from bertsmith.objectives.source_target import GAIN, other_texts
from bertsmith.objectives.unified import (
    KINDS,
    WRITTEN,
    KindShares,
    UnifiedProgram,
    UnifiedSettings,
    source_sizes,
)

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
DECODER = DecoderSpec(layers=1, heads=4, feed_forward=64, start=3)


@torch.no_grad()
def test_every_token_but_the_first_is_predicted_from_those_before_it() -> None:
    made, module = case("causal")
    rows = pairs(5)
    losses, _ = module(made.prepare(rows))
    total, count = 0.0, 0
    for start, size in zip(rows.starts, rows.sizes, strict=True):
        ids = torch.from_numpy(rows.ids[start : start + size]).long()
        segments = torch.from_numpy(rows.segments[start : start + size]).long()
        for end in range(1, int(size)):  # the text again for every token, without any mask
            inputs = Inputs.padded(ids[None, :end], torch.ones(1, end), segments[None, :end])
            logits = module.model.logits("masked_lm", module.model(inputs).hidden[-1:])
            total += float(F.cross_entropy(logits, ids[end : end + 1]))
            count += 1
    assert losses["next_token"].count == count
    assert float(losses["next_token"].sum) == pytest.approx(total, rel=1e-4)


def test_a_causal_program_refuses_a_model_that_sees_everything() -> None:
    with pytest.raises(ConfigError, match=r'set model\.sees="before"'):
        program("causal").build(Builder("bert"))
    with pytest.raises(ConfigError, match=r'model\.sees="all"'):
        program("unified").build(Builder("bert", sees="before", segments=6))
    for name in ("denoise", "masked_span"):
        with pytest.raises(ConfigError, match=rf"{name} needs a model with a decoder"):
            program(name).build(Builder("bert"))
    with pytest.raises(ConfigError, match="starts with token 2, and texts end with token 3"):
        program("denoise").build(Builder("bert", decoder=replace(DECODER, start=2)))


def test_kinds_come_in_their_shares_and_stand_in_segments_and_visibility() -> None:
    made = program("unified")
    rows = pairs(600)
    kinds, sources = made.kinds(rows)
    shares = np.bincount(kinds, minlength=4) / 600
    assert np.allclose(shares, [1 / 3, 1 / 3, 1 / 6, 1 / 6], atol=0.06)
    few = pairs(24)
    kinds, sources = made.kinds(few)
    batch = made.prepare(few)
    seen = visibility(batch.inputs.layout.sees, few.lengths)
    segments = batch.inputs.channels["segments"].split(list(few.lengths))
    expected = {"bidirectional": {0, 1}, "seq2seq": {4, 5}, "left_to_right": {2}}
    assert set(kinds.tolist()) == {0, 1, 2, 3}
    for text, kind in enumerate(kinds.tolist()):
        size, source = few.lengths[text], int(sources[text])
        square = seen[text, :size, :size]
        own = segments[text].tolist()
        assert set(own) == expected.get(KINDS[kind], {3})
        if KINDS[kind] == "bidirectional":
            assert square.all()
        elif KINDS[kind] == "left_to_right":
            assert torch.equal(square, torch.ones(size, size).tril().bool())
        elif KINDS[kind] == "right_to_left":
            assert torch.equal(square, torch.ones(size, size).triu().bool())
        else:
            assert picture(square) == picture(visibility(Prefix((source,)), [size]))
            assert own == [4] * source + [5] * (size - source)
            assert few.ids[few.starts[text] + source - 1] == 3  # [SEP] ends the source


def test_the_last_separator_is_masked_in_seq2seq_texts_alone() -> None:
    made = program("unified")
    rows = pairs(400)
    kinds, _ = made.kinds(rows)
    batch = made.prepare(rows)
    last = rows.starts + rows.sizes - 1
    masked = {
        name: np.isin(last, batch.rows[targets.at].numpy())[kinds == number].mean()
        for number, (name, targets) in enumerate(batch.targets.items())
    }
    assert masked["seq2seq"] == pytest.approx(0.3, abs=0.1)
    assert all(share == 0 for name, share in masked.items() if name != "seq2seq")
    hidden = sum(targets.count for targets in batch.targets.values())
    real = int(rows.real.sum()) + int((kinds == WRITTEN).sum())
    assert hidden / real == pytest.approx(0.3, abs=0.03)


def test_kinds_can_be_left_out_and_segments_be_those_of_bert() -> None:
    alone = UnifiedProgram(
        program("unified").masking,
        KindShares(bidirectional=0, left_to_right=0, right_to_left=0),
        by_kind=False,
    )
    rows = pairs(20)
    assert (alone.kinds(rows)[0] == WRITTEN).all()
    assert tuple(alone.weights) == ("seq2seq", GAIN)
    batch = alone.prepare(rows)
    assert batch.inputs.channels["segments"].tolist() == rows.segments.tolist()
    module = alone.build(Builder("bert"))
    assert module.record["writes"] == {"by": "mask", "source_segment": 0, "target_segment": 1}
    with pytest.raises(ConfigError, match=r"model\.segments=6 .* program\.segments"):
        program("unified").build(Builder("bert"))
    reading = UnifiedProgram(alone.masking, KindShares(seq2seq=0))
    assert GAIN not in reading.weights
    assert reading.build(Builder("bert", segments=6)).record == {}
    with pytest.raises(ValueError, match="at least one kind"):
        KindShares(bidirectional=0, seq2seq=0, left_to_right=0, right_to_left=0)
    assert UnifiedSettings().paired


def test_the_source_of_a_pair_ends_before_its_second_part() -> None:
    rows = pairs(6)
    for text, source in enumerate(source_sizes(rows).tolist()):
        start = rows.starts[text]
        assert not rows.real[start + source - 1]
        assert rows.real[start + source]
        assert (rows.segments[start : start + source] == 0).all()
    single = replace(rows, words=np.where(rows.words < 0, 0, rows.words).astype(np.int32))
    assert source_sizes(single).tolist() == list(rows.lengths)


def test_the_decoder_reads_the_text_one_token_later() -> None:
    made, _ = case("denoise")
    rows = pairs(6)
    batch = made.prepare(rows)
    assert batch.of.tolist() == rows.ids.tolist()
    assert batch.source.ids.tolist() == noise(rows).ids.tolist()
    for ids, of in zip(
        batch.target.ids.split(list(rows.lengths)), batch.of.split(list(rows.lengths)), strict=True
    ):
        assert ids[0] == 3
        assert ids[1:].tolist() == of[:-1].tolist()


def spans(count: int = 400, **settings: object) -> tuple[RowsBatch, np.ndarray, np.ndarray]:
    made = MaskedSpanProgram(MaskedSpanSettings.model_validate(settings), replacement())
    rows = pairs(count)
    return rows, *made.spans(rows)


def test_spans_are_half_of_the_text_and_lie_where_they_are_wanted() -> None:
    rows, first, sizes = spans()
    assert (np.abs(sizes - rows.sizes / 2) <= 0.5).all()
    assert (first >= 1).all()
    assert (first + sizes <= rows.sizes).all()
    at_start, at_end = first == 1, first + sizes == rows.sizes
    options = rows.sizes - sizes
    assert at_start.mean() == pytest.approx(0.2 + (0.6 / options).mean(), abs=0.06)
    assert at_end.mean() == pytest.approx(0.2 + (0.6 / options).mean(), abs=0.06)
    rows, first, sizes = spans(start=1.0, end=0.0)
    assert (first == 1).all()
    rows, first, sizes = spans(start=0.0, end=1.0, size=0.3)
    assert (first + sizes == rows.sizes).all()
    with pytest.raises(ValueError, match="shares of spans"):
        MaskedSpanSettings(start=0.7, end=0.7)


def test_the_decoder_gets_the_tokens_before_the_span_at_their_own_positions() -> None:
    made, _ = case("masked_span")
    rows = pairs(8)
    first, sizes = made.spans(rows)
    batch = made.prepare(rows)
    assert batch.target.layout.lengths == tuple(sizes.tolist())
    changed = 0
    for text, (ids, positions, of) in enumerate(
        zip(
            batch.target.ids.split(sizes.tolist()),
            batch.target.layout.positions.split(sizes.tolist()),
            batch.of.split(sizes.tolist()),
            strict=True,
        )
    ):
        begin = rows.starts[text] + first[text]
        assert of.tolist() == rows.ids[begin : begin + sizes[text]].tolist()
        assert ids.tolist() == rows.ids[begin - 1 : begin + sizes[text] - 1].tolist()
        assert positions.tolist() == list(range(first[text] - 1, first[text] + sizes[text] - 1))
        here = batch.source.ids[rows.starts[text] : rows.starts[text] + rows.sizes[text]]
        same = here.numpy() == rows.ids[rows.starts[text] : rows.starts[text] + rows.sizes[text]]
        assert same[: first[text]].all()
        assert same[first[text] + sizes[text] :].all()
        changed += (~same).sum()
    assert changed / sizes.sum() == pytest.approx(0.9, abs=0.1)


@torch.no_grad()
@pytest.mark.parametrize("sees_masks", [False, True])
def test_the_decoder_looks_at_masked_places_only_if_it_may(sees_masks) -> None:
    made = MaskedSpanProgram(MaskedSpanSettings(sees_masks=sees_masks), replacement())
    model: Model = made.build(Builder("bert", decoder=DECODER)).model
    batch = made.prepare(pairs(4))
    memory = model(batch.source).hidden
    layout = batch.source.layout
    before = model.decode(batch.target, memory, layout, sees_memory=batch.sees)
    memory[batch.source.ids == 4] += 1.0
    after = model.decode(batch.target, memory, layout, sees_memory=batch.sees)
    assert torch.equal(before, after) != sees_masks


def test_each_text_gets_the_source_of_one_of_similar_length() -> None:
    assert other_texts([5, 9, 5, 7]) == [2, 0, 3, 1]
    assert all(other != text for text, other in enumerate(other_texts([3, 3, 3])))


@torch.no_grad()
@pytest.mark.parametrize("name", ["denoise", "masked_span"])
def test_the_gain_of_a_source_is_the_loss_with_another_one_minus_that_with_its_own(name) -> None:
    made, module = case(name)
    batch = made.prepare(pairs(6))
    module.eval()
    losses, scores = module(batch)
    assert GAIN not in scores
    lengths, targets = batch.source.layout.lengths, batch.target.layout.lengths
    sources = batch.source.ids.split(list(lengths))
    ids = batch.target.ids.split(list(targets))
    positions = batch.target.layout.positions.split(list(targets))
    of = batch.of.split(list(targets))
    expected = 0.0
    for text, other in enumerate(other_texts(lengths)):
        for sign, number in ((1, other), (-1, text)):
            source = Inputs.of(sources[number].numpy(), [lengths[number]])
            target = Inputs.of(ids[text].numpy(), [targets[text]], positions=positions[text])
            memory = module.model(source).hidden
            # A mask is looked at by nobody in `masked_span`: leave it out of the memory.
            shown = source.ids != 4 if name == "masked_span" else source.ids >= 0
            layout = Inputs.of(source.ids[shown].numpy(), [int(shown.sum())]).layout
            hidden = module.model.decode(target, memory[shown], layout)
            logits = module.model.logits("masked_lm", hidden)
            expected += sign * float(F.cross_entropy(logits, of[text], reduction="sum"))
    assert losses[GAIN].count == len(batch.of)
    assert float(losses[GAIN].sum) == pytest.approx(expected, abs=2e-3)
    assert GAIN not in module.train()(batch)[0]


@torch.no_grad()
def test_the_gain_of_unified_texts_counts_their_targets_alone() -> None:
    made, module = case("unified")
    rows = pairs(30)
    batch = made.prepare(rows)
    losses, _ = module.eval()(batch)
    kinds, sources = made.kinds(rows)
    texts = np.flatnonzero(kinds == WRITTEN)
    masked = batch.rows[batch.targets["seq2seq"].at].numpy()
    of = batch.targets["seq2seq"].of
    ids = batch.inputs.ids.numpy()
    expected, count = 0.0, 0
    for text, other in enumerate(other_texts([int(sources[n]) for n in texts])):
        begin = rows.starts[texts[text]] + sources[texts[text]]
        end = rows.starts[texts[text]] + rows.sizes[texts[text]]
        here = (masked >= begin) & (masked < end)
        count += int(here.sum())
        for sign, number in ((1, texts[other]), (-1, texts[text])):
            source = list(ids[rows.starts[number] : rows.starts[number] + sources[number]])
            size = min(len(source), int(sources[texts[text]]))
            source = [*source[: size - 1], source[-1]]
            whole = np.array([*source, *ids[begin:end]])
            inputs = Inputs.of(
                whole,
                [len(whole)],
                sees=Prefix((size,)),
                channels={"segments": np.array([4] * size + [5] * (end - begin))},
            )
            hidden = module.model(inputs).hidden[masked[here] - begin + size]
            logits = module.model.logits("masked_lm", hidden)
            expected += sign * float(F.cross_entropy(logits, of[here], reduction="sum"))
    assert losses[GAIN].count == count > 5
    assert float(losses[GAIN].sum) == pytest.approx(expected, abs=2e-3)
    alone = made.prepare(pairs(1))
    assert GAIN not in module(alone)[0]


def test_denoising_needs_a_token_that_ends_the_text() -> None:
    made = DenoiseProgram(noise, 3)
    rows = pairs(3)
    batch = made.prepare(rows)
    assert batch.tokens == len(rows.ids) + sum(batch.source.layout.lengths)
    assert batch.counts == {"denoise": len(rows.ids)}
