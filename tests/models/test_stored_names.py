"""Tensor names of many ages, matched or named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bertsmith.models import Learned, Spec
from bertsmith.models.names import ours_state, tensor_names, to_published, with_stored_pooler

SPEC = Spec(
    vocab_size=9,
    hidden=8,
    layers=2,
    heads=2,
    feed_forward=8,
    embedding=8,
    positions=Learned(rows=5),
)
MLM = list(tensor_names("bert", SPEC, ["masked_lm"]).values())
BARE = list(tensor_names("bert", SPEC).values())


def test_published_names_are_those_of_the_reference() -> None:
    assert "bert.encoder.layer.1.attention.self.query.weight" in MLM
    assert "cls.predictions.bias" in MLM
    assert "encoder.layer.0.output.LayerNorm.bias" in BARE
    assert to_published("bert", "heads.sentence_order.output.bias") == (
        "bertsmith.heads.sentence_order.output.bias"
    )


def test_shared_layers_are_stored_once() -> None:
    spec = replace(SPEC, sharing="all", projected=True)
    names = tensor_names("albert", spec).values()
    assert sum(".albert_layer_groups." in name for name in names) == 16


@pytest.mark.parametrize("prefix", ["bert.", "", "module.bert.", "module.", "nezha."])
def test_any_prefix_and_the_old_norm_names_match(prefix: str) -> None:
    stored = [
        prefix
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        )
        for name in BARE
    ]
    match = ours_state("bert", SPEC, stored)
    assert sorted(match.names.values()) == sorted(stored)
    assert (match.missing, match.leftovers) == ((), ())


def test_missing_and_left_over_tensors_are_named() -> None:
    stored = [name for name in MLM if "layer.1.output.dense" not in name]
    match = ours_state("bert", SPEC, [*stored, "bert.extra.weight"], heads=["masked_lm"])
    assert match.missing == (
        "bert.encoder.layer.1.output.dense.weight",
        "bert.encoder.layer.1.output.dense.bias",
    )
    assert match.leftovers == ("bert.extra.weight",)


def test_a_tensor_stored_twice_is_left_over() -> None:
    match = ours_state("bert", SPEC, [*BARE, "bert.embeddings.LayerNorm.weight"])
    assert match.leftovers == ("bert.embeddings.LayerNorm.weight",)


def test_copies_buffers_and_other_heads_are_told_apart() -> None:
    more = [
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "bert.embeddings.position_ids",
        "cls.seq_relationship.weight",
    ]
    match = ours_state("bert", SPEC, [*MLM, *more], heads=["masked_lm"])
    assert match.tied == {
        more[0]: "encoder.embeddings.tokens.weight",
        more[1]: "heads.masked_lm.bias",
    }
    assert match.buffers == (more[2],)
    assert match.unused == (more[3],)
    assert match.leftovers == ()
    bare = ours_state("bert", SPEC, [*MLM, *more])
    assert set(bare.unused) == {name for name in [*MLM, *more] if name.startswith("cls.")}


def test_a_bias_stored_only_with_the_decoder_is_found() -> None:
    stored = [name.replace("predictions.bias", "predictions.decoder.bias") for name in MLM]
    match = ours_state("bert", SPEC, stored, heads=["masked_lm"])
    assert match.names["heads.masked_lm.bias"] == "cls.predictions.decoder.bias"
    assert (match.missing, match.tied) == ((), {})


def test_the_stored_tensors_decide_on_the_pooler() -> None:
    assert with_stored_pooler("bert", SPEC, BARE).pooler
    without = [name for name in BARE if "pooler" not in name]
    assert not with_stored_pooler("bert", SPEC, without).pooler
