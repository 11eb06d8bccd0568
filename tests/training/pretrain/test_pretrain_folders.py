"""What comes out of pre-training loads in transformers and gives the same numbers, heads too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from toy_corpus import short_recipe

from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.models.build import Model
from bertsmith.nn import Inputs, Layout
from bertsmith.training.pretrain.pretrain import Job, pretrain

LENGTHS = (9, 14)


def trained(name: str, toy_shards: Path, out: Path) -> Path:
    recipe = short_recipe(name, "optimizer.lr=5e-3", "model.dropout=0.1", steps=5)
    pretrain(Job(recipe=recipe, corpus=toy_shards, out=out))
    return out


def inputs(model: Model) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(1)
    ids = torch.from_numpy(rng.integers(5, model.spec.vocab_size, sum(LENGTHS)))
    segments = torch.cat([(torch.arange(length) > 5).long() for length in LENGTHS])
    return ids, segments


def padded(rows: torch.Tensor) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows.split(LENGTHS)), batch_first=True)


def theirs(reference, ids, segments):
    mask = padded(torch.ones_like(ids))
    with torch.no_grad():
        return reference(
            input_ids=padded(ids), token_type_ids=padded(segments), attention_mask=mask
        )


def real(logits: torch.Tensor) -> torch.Tensor:
    return torch.cat([row[:length] for row, length in zip(logits, LENGTHS, strict=True)])


@pytest.mark.parametrize(
    ("name", "kind", "fields"),
    [
        ("bert", "BertForPreTraining", ("prediction_logits", "seq_relationship_logits")),
        ("albert", "AlbertForPreTraining", ("prediction_logits", "sop_logits")),
        ("spanbert", "BertForMaskedLM", ("logits",)),
        ("fast", "BertForMaskedLM", ("logits",)),
        ("unilm", "BertForMaskedLM", ("logits",)),
        ("gpt", "BertLMHeadModel", ("logits",)),
    ],
)
def test_transformers_gives_the_same_logits(name, kind, fields, toy_shards, tmp_path) -> None:
    import transformers

    out = trained(name, toy_shards, tmp_path / name)
    assert json.loads((out / "config.json").read_text())["architectures"] == [kind]
    reference, told = getattr(transformers, kind).from_pretrained(out, output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    model = load_model(out).model.eval()
    ids, segments = inputs(model)
    found = theirs(reference.eval(), ids, segments)
    with torch.no_grad():
        hidden = model(Inputs(ids, Layout.of(LENGTHS), {"segments": segments})).hidden
        words = model.logits("masked_lm", hidden)
        torch.testing.assert_close(words, real(getattr(found, fields[0])), rtol=0, atol=2e-5)
        if len(fields) > 1:
            head = next(kind for kind in model.heads if kind != "masked_lm")
            first = hidden[torch.tensor([0, LENGTHS[0]])]
            pairs = model.logits(head, first)
            torch.testing.assert_close(pairs, getattr(found, fields[1]), rtol=0, atol=2e-5)


def test_both_halves_of_electra_load_in_transformers(toy_shards, tmp_path) -> None:
    from transformers import ElectraForMaskedLM, ElectraForPreTraining

    out = trained("electra", toy_shards, tmp_path / "electra")
    whole = load_model(out).model.eval()
    small = load_model(out / "generator").model.eval()
    ids, segments = inputs(whole)
    batch = Inputs(ids, Layout.of(LENGTHS), {"segments": segments})
    detector = ElectraForPreTraining.from_pretrained(out).eval()
    filler = ElectraForMaskedLM.from_pretrained(out / "generator").eval()
    with torch.no_grad():
        replaced = whole.logits("replaced_token", whole(batch).hidden)
        words = small.logits("masked_lm", small(batch).hidden)
    expected = real(theirs(detector, ids, segments).logits)
    torch.testing.assert_close(replaced, expected, rtol=0, atol=2e-5)
    expected = real(theirs(filler, ids, segments).logits)
    torch.testing.assert_close(words, expected, rtol=0, atol=2e-5)
    shared = small.encoder.embeddings.tokens.weight, whole.encoder.embeddings.tokens.weight
    assert torch.equal(*shared)


def test_files_have_the_mode_of_the_umask(toy_shards, tmp_path) -> None:
    out = trained("bert", toy_shards, tmp_path / "run")
    for path in out.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path


def test_bert_goes_on_as_unilm_with_segments_that_begin_as_its_own(toy_shards, tmp_path) -> None:
    old = trained("fast", toy_shards, tmp_path / "bert")
    recipe = short_recipe("unilm", "optimizer.lr=1e-9", "optimizer.rest_lr=1e-9", steps=1)
    pretrain(Job(recipe=recipe, corpus=toy_shards, out=tmp_path / "unilm", init=str(old)))
    before, after = (load_model(path).model for path in (old, tmp_path / "unilm"))
    table = before.encoder.embeddings.segments.weight
    grown = after.encoder.embeddings.segments.weight
    assert after.spec.segments == 6
    torch.testing.assert_close(grown, table[[0, 1, 0, 0, 0, 1]], rtol=0, atol=1e-6)
    writes = json.loads((tmp_path / "unilm" / "bertsmith.json").read_text())["writes"]
    assert writes == {"by": "mask", "source_segment": 4, "target_segment": 5}
    small = short_recipe("unilm", "model.segments=3", steps=1)
    with pytest.raises(ConfigError, match="has 6 segments and the recipe 3"):
        pretrain(
            Job(recipe=small, corpus=toy_shards, out=tmp_path / "no", init=str(tmp_path / "unilm"))
        )


@pytest.mark.parametrize("name", ["bart", "mass"])
def test_transformers_decodes_alike_and_starts_with_the_token_that_ends_texts(
    name, toy_shards, tmp_path
) -> None:
    import transformers

    out = trained(name, toy_shards, tmp_path / name)
    config = json.loads((out / "config.json").read_text())
    loaded = load_model(out)
    assert config["decoder_start_token_id"] == loaded.tokenizer.special.sep
    assert config["scale_embedding"] == (name == "mass")
    reference = transformers.BartForConditionalGeneration.from_pretrained(out).eval()
    model = loaded.model.eval()
    ids, _ = inputs(model)
    with torch.no_grad():
        mask = padded(torch.ones_like(ids))
        theirs = reference(
            input_ids=padded(ids), attention_mask=mask, decoder_input_ids=padded(ids.flip(0))
        ).logits
        source = Inputs(ids, Layout.of(LENGTHS))
        memory = model(source).hidden
        hidden = model.decode(Inputs(ids.flip(0), Layout.of(LENGTHS)), memory, source.layout)
        ours = model.logits("language_model", hidden)
    torch.testing.assert_close(ours, real(theirs), rtol=0, atol=2e-5)
