"""Models that write: logits equal transformers' to 2e-5, every weight random."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import transformers
from parity_families import CONFIGS, WRITING, inputs_of, ours, packed, padded, reference, texts
from torch import Tensor
from transformers.modeling_outputs import BaseModelOutput

from bertsmith.models import config_from_spec
from bertsmith.models.build import Model
from bertsmith.nn import Dense, Inputs, Layout, Want

CLOSE = {"rtol": 0.0, "atol": 2e-5}
CAUSAL = [
    ("bert", "LMHeadModel", {"is_decoder": True}),
    ("roberta", "ForCausalLM", {"is_decoder": True}),
    ("electra", "ForCausalLM", {"is_decoder": True}),
    ("openai-gpt", "LMHeadModel", {}),
    ("openai-gpt", "LMHeadModel", {"afn": "silu"}),
    ("gpt2", "LMHeadModel", {}),
    ("gpt2", "LMHeadModel", {"n_inner": 40, "activation_function": "gelu"}),
]
TARGETS = (4, 9, 2, 6, 1)


@pytest.mark.parametrize(("family", "ending", "changes"), CAUSAL)
@torch.no_grad()
def test_causal_logits_and_layers_equal_transformers(
    family: str, ending: str, changes: dict[str, object]
) -> None:
    theirs = reference(family, ending, **changes)
    model = ours(theirs)
    assert model.spec.sees == "before"
    ids, segments, layout = texts(model)
    batch = padded(model, ids, segments, layout)
    expected = theirs(**batch, output_hidden_states=True)
    got = model(inputs_of(ids, segments, layout), want=Want(layers=True))
    for mine, state in zip(got.layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(mine, packed(state, layout), **CLOSE)
    (kind,) = model.heads
    logits = model.logits(kind, got.hidden)
    torch.testing.assert_close(logits, packed(expected.logits, layout), **CLOSE)


@torch.no_grad()
def test_is_decoder_makes_every_bert_class_causal_as_in_transformers() -> None:
    theirs = reference("bert", "ForSequenceClassification", is_decoder=True, num_labels=3)
    model = ours(theirs)
    ids, segments, layout = texts(model)
    expected = theirs(**padded(model, ids, segments, layout)).logits
    rows = model.text_rows("sequence", inputs_of(ids, segments, layout))
    torch.testing.assert_close(model.logits("sequence", rows), expected, **CLOSE)


@pytest.mark.parametrize("family", ["openai-gpt", "gpt2"])
@torch.no_grad()
def test_gpt_classifies_by_the_last_token(family: str) -> None:
    theirs = reference(family, "ForSequenceClassification", num_labels=5, pad_token_id=1)
    model = ours(theirs)
    ids, _, layout = texts(model)
    expected = theirs(**padded(model, ids, None, layout)).logits
    rows = model.text_rows("sequence", Inputs(ids, layout))
    torch.testing.assert_close(model.logits("sequence", rows), expected, **CLOSE)


@pytest.mark.parametrize(
    ("ending", "kind"), [("ForTokenClassification", "token"), ("ForQuestionAnswering", "span")]
)
@torch.no_grad()
def test_gpt2_heads_on_rows_equal_transformers(ending: str, kind: str) -> None:
    theirs = reference("gpt2", ending, num_labels=2)
    model = ours(theirs)
    ids, _, layout = texts(model)
    expected = theirs(**padded(model, ids, None, layout))
    answer = (
        expected.logits
        if kind == "token"
        else torch.stack([expected.start_logits, expected.end_logits], -1)
    )
    logits = model.logits(kind, model(Inputs(ids, layout)).hidden)
    torch.testing.assert_close(logits, packed(answer, layout), **CLOSE)


def _bart(ending: str, **changes: object) -> tuple[transformers.PreTrainedModel, Model]:
    theirs = reference("bart", ending, **changes)
    if hasattr(theirs, "final_logits_bias"):
        torch.nn.init.normal_(theirs.final_logits_bias)
    return theirs, ours(theirs)


def _target(lengths: tuple[int, ...] = TARGETS) -> tuple[Tensor, Layout]:
    random = torch.Generator().manual_seed(13)
    return torch.randint(3, 99, (sum(lengths),), generator=random), Layout.of(lengths)


SHAPES = [
    {},
    {"scale_embedding": True},
    {"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 20},
    {"activation_function": "relu", "encoder_layers": 1},
]


@pytest.mark.parametrize("changes", SHAPES, ids=str)
@torch.no_grad()
def test_bart_equals_transformers(changes: dict[str, object]) -> None:
    theirs, model = _bart("ForConditionalGeneration", **changes)
    ids, _, layout = texts(model)
    target, target_layout = _target()
    source = padded(model, ids, None, layout)
    written = padded(model, target, None, target_layout)
    expected = theirs(
        **source,
        decoder_input_ids=written["input_ids"],
        decoder_attention_mask=written["attention_mask"],
        output_hidden_states=True,
    )
    memory = model(Inputs(ids, layout), want=Want(layers=True))
    for mine, state in zip(memory.layers, expected.encoder_hidden_states, strict=True):
        torch.testing.assert_close(mine, packed(state, layout), **CLOSE)
    rows = model.decode(Inputs(target, target_layout), memory.hidden, layout)
    torch.testing.assert_close(
        rows, packed(expected.decoder_hidden_states[-1], target_layout), **CLOSE
    )
    logits = model.logits("language_model", rows)
    torch.testing.assert_close(logits, packed(expected.logits, target_layout), **CLOSE)


@torch.no_grad()
def test_bart_without_heads_equals_transformers() -> None:
    theirs, model = _bart("Model")
    assert not model.heads
    ids, _, layout = texts(model)
    target, target_layout = _target()
    expected = theirs(
        **padded(model, ids, None, layout),
        decoder_input_ids=padded(model, target, None, target_layout)["input_ids"],
    ).last_hidden_state
    rows = model.decode(Inputs(target, target_layout), model(Inputs(ids, layout)).hidden, layout)
    torch.testing.assert_close(rows, packed(expected, target_layout), **CLOSE)


@torch.no_grad()
def test_bart_classifies_by_the_last_row_of_its_decoder() -> None:
    theirs, model = _bart("ForSequenceClassification", num_labels=3)
    ids, _, layout = texts(model, (7, 3, 12, 12, 5))
    ids[torch.tensor(layout.starts) + torch.tensor(layout.lengths) - 1] = theirs.config.eos_token_id
    expected = theirs(**padded(model, ids, None, layout)).logits
    rows = model.text_rows("sequence", Inputs(ids, layout))
    torch.testing.assert_close(model.logits("sequence", rows), expected, **CLOSE)
    known = model.text_rows("sequence", Inputs(ids, layout), model(Inputs(ids, layout)).hidden)
    torch.testing.assert_close(known, rows, **CLOSE)


@torch.no_grad()
def test_mass_is_bart_with_shifted_positions_and_hidden_source_places() -> None:
    theirs, model = _bart("ForConditionalGeneration", scale_embedding=True)
    assert model.spec.embedding_scale
    ids, _, layout = texts(model, (12, 9))
    source = padded(model, ids, None, layout)
    target, target_layout = _target((5, 4))
    first = (3, 2)  # the place where the span of each text begins
    visible = torch.ones(2, 12, dtype=torch.bool)
    for text, (start, length) in enumerate(zip(first, target_layout.lengths, strict=True)):
        visible[text, start : start + length] = False
    written = padded(model, target, None, target_layout)
    decoder = theirs.model.decoder
    embedded = decoder.embed_tokens(written["input_ids"])
    table = decoder.embed_positions.weight[2:]
    for text, start in enumerate(first):
        embedded[text] += table[start : start + 5] - table[:5]
    memory = theirs.model.encoder(**source).last_hidden_state
    expected = theirs(
        encoder_outputs=BaseModelOutput(last_hidden_state=memory),
        attention_mask=source["attention_mask"] * visible,
        decoder_inputs_embeds=embedded,
        decoder_attention_mask=written["attention_mask"],
    ).logits
    moved = torch.repeat_interleave(torch.tensor(first), torch.tensor(target_layout.lengths))
    placed = replace(target_layout, positions=target_layout.positions + moved)
    rows = model.decode(
        Inputs(target, placed),
        model(Inputs(ids, layout)).hidden,
        layout,
        sees_memory=Dense(visible[:, None].expand(2, 5, 12)),
    )
    logits = model.logits("language_model", rows)
    torch.testing.assert_close(logits, packed(expected, target_layout), **CLOSE)


@pytest.mark.parametrize(
    ("family", "ending", "changes"),
    [*CAUSAL, *[("bart", "ForConditionalGeneration", shape) for shape in SHAPES]],
)
def test_written_configs_mean_the_same_in_transformers(
    family: str, ending: str, changes: dict[str, object]
) -> None:
    config = reference(family, ending, **changes).config
    model = ours(reference(family, ending, **changes))
    written = config_from_spec(model.variant, model.spec, heads=model.head_specs)
    again = type(config)(**{k: v for k, v in written.items() if k != "model_type"})
    assert written["architectures"] == config.architectures
    for name in (CONFIGS | WRITING)[family] | changes:
        assert getattr(again, name) == getattr(config, name), name
    assert getattr(again, "is_decoder", None) is getattr(config, "is_decoder", None)
    assert again.pad_token_id == config.pad_token_id
