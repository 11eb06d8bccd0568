"""Folders of models that write give the same logits here and in transformers, both ways."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_models import randomized, shrunk
from torch import Tensor, nn

from bertsmith.errors import TensorMismatchError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model
from bertsmith.models import Head, Spec
from bertsmith.models.build import Model, build
from bertsmith.models.config.labels import NO_LABELS, Labels
from bertsmith.nn import Inputs, Layout

pytestmark = pytest.mark.usefixtures("edited_folders")

CLOSE = {"rtol": 0.0, "atol": 2e-5}
IDS = [[0, 5, 6, 7, 2], [0, 8, 2], [0, *range(5, 30), 2]]
CASES = {
    "causal bert": ("bert", "masked_lm", "BertLMHeadModel"),
    "causal roberta": ("roberta", "masked_lm", "RobertaForCausalLM"),
    "causal electra": ("electra", "masked_lm", "ElectraForCausalLM"),
    "gpt": ("gpt", "language_model", "OpenAIGPTLMHeadModel"),
    "gpt2": ("gpt2", "language_model", "GPT2LMHeadModel"),
    "bart": ("bart", "language_model", "BartForConditionalGeneration"),
    "mass": ("bart", "language_model", "BartForConditionalGeneration"),
    "bart rows": ("bart", None, "BartModel"),
    "gpt2 rows": ("gpt2", None, "GPT2Model"),
    "bart classes": ("bart", "sequence", "BartForSequenceClassification"),
    "gpt2 classes": ("gpt2", "sequence", "GPT2ForSequenceClassification"),
    "gpt classes": ("gpt", "sequence", "OpenAIGPTForSequenceClassification"),
    "gpt2 tokens": ("gpt2", "token", "GPT2ForTokenClassification"),
}


def _spec(case: str, variant: str) -> Spec:
    spec = shrunk(variant, vocab_size=40, hidden=32, heads=4, rows=40)
    if case.startswith("causal"):
        spec = replace(spec, sees="before", pooler=False)
    return replace(spec, embedding_scale=True) if case == "mass" else spec


def _heads(kind: str | None) -> list[Head]:
    if kind is None:
        return []
    return [Head(kind=kind, outputs=3 if kind in ("sequence", "token") else 2)]


@torch.no_grad()
def _ours(model: Model, kind: str | None) -> list[Tensor]:
    found = []
    for ids in IDS:
        inputs = Inputs(torch.tensor(ids), Layout.of([len(ids)]))
        if kind == "sequence":
            rows = model.text_rows(kind, inputs)
        elif model.decoder is not None:
            target = Inputs(torch.tensor([2, *ids[:-1]]), inputs.layout)
            rows = model.decode(target, model(inputs).hidden, inputs.layout)
        else:
            rows = model(inputs).hidden
        found.append(rows if kind is None else model.logits(kind, rows))
    return found


@torch.no_grad()
def _theirs(model: nn.Module, kind: str | None) -> list[Tensor]:
    found = []
    for ids in IDS:
        given = {"input_ids": torch.tensor([ids])}
        if "Conditional" in type(model).__name__:
            given["decoder_input_ids"] = torch.tensor([[2, *ids[:-1]]])
        answer = model(**given)
        logits = answer.last_hidden_state if kind is None else answer.logits
        found.append(logits if kind == "sequence" else logits[0])
    return found


def _close(ours: list[Tensor], theirs: list[Tensor]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_a_folder_goes_to_transformers_and_back(case: str, tmp_path: Path) -> None:
    variant, kind, name = CASES[case]
    model = randomized(build(variant, _spec(case, variant), heads=_heads(kind)))
    labels = Labels(names=("a", "b", "c")) if kind in ("sequence", "token") else NO_LABELS
    save_model(model, None, tmp_path / "ours", labels=labels)
    theirs, state = getattr(transformers, name).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert theirs.config.architectures == [name]
    for faults in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not state[faults]
    expected = _theirs(theirs.eval(), kind)
    _close(_ours(model, kind), expected)
    theirs.save_pretrained(tmp_path / "theirs")
    again = load_model(tmp_path / "theirs")
    assert again.model.spec == model.spec
    assert [head.kind for head in again.model.head_specs] == [kind] * (kind is not None)
    assert again.unknown_keys == ()
    _close(_ours(again.model, kind), expected)


def test_stored_copies_and_masks_of_old_folders_are_recognized(tmp_path: Path) -> None:
    for variant in ("bart", "gpt2"):
        model = randomized(build(variant, _spec("", variant), heads=_heads("language_model")))
        path = tmp_path / variant
        save_model(model, None, path)
        state = load_file(path / "model.safetensors")
        tokens = model.encoder.embeddings.tokens.weight.detach()
        state["lm_head.weight"] = tokens.clone()
        if variant == "bart":
            for side in ("encoder", "decoder"):
                state[f"model.{side}.embed_tokens.weight"] = tokens.clone()
            del state["model.shared.weight"]
            del state["final_logits_bias"]
            model.get_parameter("heads.language_model.bias").data.zero_()
        else:  # files of 2019: causal masks, and no prefix
            state = {name.removeprefix("transformer."): one for name, one in state.items()}
            state |= {f"h.{i}.attn.bias": torch.ones(1, 1, 40, 40).tril() for i in range(2)}
            state |= {f"h.{i}.attn.masked_bias": torch.tensor(-1e4) for i in range(2)}
        save_file(state, path / "model.safetensors")
        _close(_ours(load_model(path).model, "language_model"), _ours(model, "language_model"))


def test_a_copy_that_differs_is_refused(tmp_path: Path) -> None:
    model = randomized(build("bart", _spec("", "bart"), heads=_heads("language_model")))
    save_model(model, None, tmp_path / "m")
    state = load_file(tmp_path / "m" / "model.safetensors")
    state["model.decoder.embed_tokens.weight"] = state["model.shared.weight"] + 1
    save_file(state, tmp_path / "m" / "model.safetensors")
    with pytest.raises(TensorMismatchError, match=r"decoder\.embed_tokens.* should repeat"):
        load_model(tmp_path / "m")
