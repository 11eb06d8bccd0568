"""What programs predict and how it is scored, for every objective of the table."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from program_cases import MIXES, SOURCES, VOCAB, case, masking, objectives, pairs, tiny
from torch.nn import functional as F

from bertsmith.corpus.rows import RowsBatch
from bertsmith.errors import ConfigError
from bertsmith.models.build import build
from bertsmith.objectives import PROGRAMS
from bertsmith.objectives.electra import BASELINE, ElectraProgram, sampled
from bertsmith.objectives.masked import MaskedProgram, ObjectiveTable
from bertsmith.objectives.program import BatchWide
from bertsmith.objectives.source_target import GAIN

EACH = pytest.mark.parametrize("name", MIXES)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def rows_for(name: str, count: int = 8, seed: int = 0) -> RowsBatch:
    rows = pairs(count, seed, segments=1 if name == "roberta" else 2)
    return dataclasses.replace(rows, source=SOURCES.get(name, ""))


@EACH
def test_counts_are_known_before_the_forward_pass(name) -> None:
    program, module = case(name)
    batch = program.prepare(rows_for(name))
    losses, scores = module(batch)
    assert {part: loss.count for part, loss in losses.items()} == batch.counts
    assert tuple(batch.counts) == MIXES[name]
    for part, score in scores.items():
        counted = "rtd" if part == BASELINE else part
        assert 0 <= int(score.correct) <= score.count == batch.counts[counted]
    assert (BASELINE in scores) == (name == "electra")
    # What another text's source costs is measured in evaluation only.
    assert tuple(part for part in program.weights if part != GAIN) == MIXES[name]


@EACH
def test_every_weight_gets_a_gradient_and_one_batch_can_be_learned(name) -> None:
    program, module = case(name)
    batch = program.prepare(rows_for(name, 16))
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-3)
    first: dict[str, float] = {}
    for step in range(80):
        losses, scores = module(batch)
        means = {part: loss.sum / loss.count for part, loss in losses.items()}
        first = first or {part: mean.item() for part, mean in means.items()}
        optimizer.zero_grad()
        sum(means.values(), torch.zeros(())).backward()
        if not step:
            for label, parameter in module.named_parameters():
                assert parameter.grad is not None, label
                assert parameter.grad.isfinite().all(), label
                assert parameter.grad.abs().sum() > 0, label
        optimizer.step()
    means.pop(BASELINE, None)
    for part, mean in means.items():
        # The discriminator's question gets harder as the generator learns.
        assert mean.item() < first[part] * (0.97 if part == "rtd" else 0.4), part
    for part, score in scores.items():
        if part in ("nsp", "sop"):
            assert int(score.correct) == score.count


@EACH
def test_batches_may_be_split_in_any_way(name) -> None:
    program, module = case(name)
    whole = rows_for(name, 8)
    parts = [_part(whole, range(0, 3)), _part(whole, range(3, 4)), _part(whole, range(4, 8))]
    within = program.within([whole]) if isinstance(program, BatchWide) else program
    losses, scores = module(program.prepare(whole, 0.5))
    split = [module(within.prepare(part, 0.5)) for part in parts]
    for part, loss in losses.items():
        first, *rest = (one[part] for one, _ in split)
        total = sum(rest, first)
        assert total.count == loss.count
        if part == BASELINE:
            continue  # the entropy of a share, which is not a sum over batches
        torch.testing.assert_close(total.sum, loss.sum, **CLOSE)
    for part, score in scores.items():
        assert sum(int(one[part].correct) for _, one in split) == score.correct
        assert sum(one[part].count for _, one in split) == score.count


def _part(rows: RowsBatch, texts: range) -> RowsBatch:
    here = slice(rows.starts[texts[0]], rows.starts[texts[-1]] + rows.lengths[texts[-1]])
    return RowsBatch(
        ids=rows.ids[here],
        segments=rows.segments[here],
        words=rows.words[here],
        lengths=tuple(rows.lengths[n] for n in texts),
        keys=rows.keys[list(texts)],
        pair_labels=rows.pair_labels[list(texts)],
        source=rows.source,
    )


@torch.no_grad()
def test_only_rows_with_targets_are_read() -> None:
    program, module = case("bert")
    rows = rows_for("bert")
    batch = program.prepare(rows)
    masked = program.masking(rows)
    expected = np.union1d(np.flatnonzero(masked.hidden), rows.starts)
    assert batch.rows.tolist() == expected.tolist()
    read = module.model(batch.inputs, rows=batch.rows).hidden
    full = module.model(batch.inputs).hidden
    torch.testing.assert_close(read, full[batch.rows], **CLOSE)
    assert batch.rows[batch.targets["nsp"].at].tolist() == list(batch.inputs.layout.starts)


@torch.no_grad()
def test_the_masked_lm_is_the_mean_that_torch_computes() -> None:
    program, module = case("bert")
    rows = rows_for("bert")
    batch = program.prepare(rows)
    losses, scores = module(batch)
    hidden = np.flatnonzero(program.masking(rows).hidden)
    full = module.model(batch.inputs).hidden
    logits = module.model.logits("masked_lm", full[hidden])
    targets = torch.from_numpy(rows.ids[hidden]).long()
    expected = F.cross_entropy(logits, targets)
    torch.testing.assert_close(losses["mlm"].sum / losses["mlm"].count, expected, **CLOSE)
    assert int(scores["mlm"].correct) == int((logits.argmax(-1) == targets).sum())
    assert (batch.inputs.ids[hidden] != targets).float().mean() > 0.7


@torch.no_grad()
def test_next_sentence_and_masked_lm_equal_the_reference_library() -> None:
    transformers = pytest.importorskip("transformers")
    from bertsmith.models.names import published_state

    program, module = case("bert")
    config = transformers.BertConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    reference = transformers.BertForPreTraining(config).eval()
    missing = reference.load_state_dict(published_state(module.model), strict=False)
    assert not missing.unexpected_keys
    rows = rows_for("bert", 1)
    batch = program.prepare(rows)
    labels = torch.full((1, len(rows.ids)), -100)
    hidden = torch.from_numpy(program.masking(rows).hidden)
    labels[0, hidden] = torch.from_numpy(rows.ids).long()[hidden]
    out = reference(
        input_ids=batch.inputs.ids[None],
        token_type_ids=batch.inputs.channels["segments"][None],
        labels=labels,
        next_sentence_label=torch.from_numpy(rows.pair_labels),
    )
    losses, _ = module.eval()(batch)
    ours = sum(loss.sum / loss.count for loss in losses.values())
    torch.testing.assert_close(ours, out.loss, **CLOSE)


def test_span_boundaries_are_visible_and_places_count_from_the_span() -> None:
    rows = rows_for("spanbert", 40)
    masked = masking(0.3)(rows)
    boundary = objectives("sbo").sbo.targets(rows, masked)
    left, right = boundary.at.T.tolist()
    places = boundary.more["place"].tolist()
    hidden = masked.hidden
    assert not hidden[left].any()
    assert not hidden[right].any()
    rebuilt = [(a + 1 + p, b) for a, b, p in zip(left, right, places, strict=True)]
    assert [row for row, _ in rebuilt] == np.flatnonzero(hidden).tolist()
    for (row, b), a, target in zip(rebuilt, left, boundary.of.tolist(), strict=True):
        assert hidden[a + 1 : b].all()
        assert rows.ids[row] == target
        assert rows.texts[a] == rows.texts[b]


def test_spans_at_the_bare_ends_of_a_text_have_no_boundary_and_are_not_predicted() -> None:
    hidden = np.array([1, 0, 1, 1, 0, 1, 1, 0, 0, 1], dtype=bool)
    rows = RowsBatch(
        ids=np.arange(10, dtype=np.int32),
        segments=np.zeros(10, np.int32),
        words=np.arange(10, dtype=np.int32),
        lengths=(6, 4),
        keys=np.arange(2, dtype=np.uint64),
    )
    make = masking()(rows)
    masked = type(make)(ids=rows.ids, hidden=hidden, groups=make.groups, fates=make.fates)
    boundary = objectives("sbo").sbo.targets(rows, masked)
    assert boundary.of.tolist() == [2, 3]
    assert boundary.at.tolist() == [[1, 4], [1, 4]]


@torch.no_grad()
def test_the_generator_is_sampled_from_its_own_distribution() -> None:
    _, module = case("electra")
    generator = module.companions["generator"]
    hidden = 3 * torch.randn(1, 16, generator=torch.Generator().manual_seed(0))
    generator.heads["masked_lm"].bias[7] = 2.0
    chances = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    drawn = sampled(generator, hidden.expand(20_000, -1), chances)
    expected = generator.logits("masked_lm", hidden)[0].softmax(-1)
    found = torch.bincount(drawn, minlength=VOCAB) / 20_000
    assert (found - expected).abs().max() < 1e-3
    top = sampled(generator, hidden.expand(2, -1), torch.tensor([0.0, 1 - 2**-53]))
    assert 0 <= int(top.min()) <= int(top.max()) < VOCAB


def test_replaced_tokens_are_those_that_differ_and_the_baseline_counts_the_others() -> None:
    program, module = case("electra")
    rows = rows_for("electra", 30)
    batch = program.prepare(rows)
    _, scores = module(batch)
    assert batch.counts["rtd"] == int(rows.real.sum())
    share = int(scores[BASELINE].correct) / scores[BASELINE].count
    # An untrained generator of 60 tokens is right once in a while; the rest was replaced.
    assert 1 - batch.counts["mlm"] / batch.counts["rtd"] <= share < 0.9


def test_the_model_is_shown_what_the_generator_wrote() -> None:
    program, module = case("electra")
    rows = rows_for("electra", 30)
    with torch.no_grad():
        module.companions["generator"].heads["masked_lm"].bias[7] = 1e4  # it always writes token 7
    _, scores = module(program.prepare(rows))
    hidden = program.masking(rows).hidden
    replaced = hidden & (rows.ids != 7)
    assert int(scores[BASELINE].correct) == int((rows.real & ~replaced).sum())
    assert replaced.sum() > 20


def test_generator_and_discriminator_share_their_embeddings() -> None:
    _, module = case("electra")
    ours, theirs = (
        module.companions["generator"].encoder.embeddings,
        module.model.encoder.embeddings,
    )
    for part in ("tokens", "positions", "segments", "norm"):
        assert getattr(ours, part) is getattr(theirs, part)
    assert ours.project is not theirs.project
    names = [name for name, _ in module.named_parameters()]
    assert len(names) == len({id(p) for p in module.parameters()})
    assert "companions.generator.encoder.embeddings.tokens.weight" not in names


@EACH
def test_a_batch_moves_to_a_device_whole(name) -> None:
    program, _ = case(name)
    batch = program.prepare(rows_for(name)).to("meta")
    tensors = list(_tensors(batch))
    assert len(tensors) > 4
    assert {tensor.device.type for tensor in tensors} == {"meta"}


def _tensors(value: object) -> Iterator[torch.Tensor]:
    """Every tensor that a batch holds, however deep."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _tensors(part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _tensors(getattr(value, field.name))


def test_what_does_not_fit_together_is_refused() -> None:
    table = objectives("mlm", "nsp")
    with pytest.raises(ConfigError, match="named once"):
        MaskedProgram([table.mlm, table.mlm], masking())
    with pytest.raises(ConfigError, match="at least one"):
        MaskedProgram([], masking())
    model = build("electra", tiny("electra"), heads=["replaced_token"])
    generator = build("electra", tiny("electra", embedding=8), heads=["masked_lm"])
    with pytest.raises(ConfigError, match="embedding width"):
        ElectraProgram(masking(), mlm=1.0, rtd=50.0, width=0.5).module(model, generator)
    rows = pairs(2)
    bare = RowsBatch(
        ids=rows.ids, segments=rows.segments, words=rows.words, lengths=rows.lengths, keys=rows.keys
    )
    with pytest.raises(ConfigError, match='pair = "next_sentence"'):
        MaskedProgram([table.nsp], masking()).prepare(bare)


def test_every_objective_and_program_is_used_here_and_named_by_its_key() -> None:
    names = set(ObjectiveTable.model_fields)
    masked = ("bert", "spanbert", "roberta", "albert")
    assert {part for name in masked for part in MIXES[name]} == names
    assert {one.name for one in objectives(*(names - {"sop"})).chosen} == names - {"sop"}
    assert set(PROGRAMS) == {"masked", *MIXES} - set(masked)
    assert all(program().kind == kind for kind, program in PROGRAMS.items())
