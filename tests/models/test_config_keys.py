"""config.json: read as meant, or refused by name."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertsmith.errors import ConfigError
from bertsmith.models import VARIANTS, Head, Learned, Spec, config_from_spec, spec_from_config
from bertsmith.models.build import build
from bertsmith.models.config.labels import Labels
from bertsmith.models.names import published_state

BERT = config_from_spec("bert", VARIANTS["bert"].spec)
SMALL = Spec(
    vocab_size=60,
    hidden=16,
    layers=2,
    heads=2,
    feed_forward=24,
    embedding=16,
    positions=Learned(rows=20),
)
LONG = os.environ.get("BERTSMITH_LONG") == "1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": True}, "hidden_size must be a whole number .*, not True"),
        ({"hidden_size": 768.0}, "hidden_size must be"),
        ({"hidden_size": "768"}, "hidden_size must be"),
        ({"hidden_size": 10**12}, "hidden_size must be"),
        ({"vocab_size": -1}, "vocab_size must be"),
        ({"vocab_size": 10**5000}, "vocab_size must be .* more than 60 digits"),
        ({"num_attention_heads": 7}, "not a multiple of 7 heads"),
        ({"num_hidden_layers": None}, "no 'num_hidden_layers'"),
        ({"hidden_size": 65_536, "num_attention_heads": 64}, "parameters"),
        ({"hidden_act": "quick_gelu"}, "hidden_act must be one of .*, not 'quick_gelu'"),
        ({"hidden_act": ["gelu"]}, "hidden_act"),
        ({"hidden_dropout_prob": 1}, "hidden_dropout_prob"),
        ({"hidden_dropout_prob": float("nan")}, "hidden_dropout_prob"),
        ({"layer_norm_eps": 0}, "layer_norm_eps"),
        ({"position_embedding_type": "relative_key_query"}, "position_embedding_type"),
        ({"is_decoder": 1}, "is_decoder"),
        ({"add_cross_attention": True}, "add_cross_attention"),
        ({"rope_theta": 10_000}, "rope_theta"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
        ({"embedding_size": 128}, "embedding_size"),
        ({"use_relative_position": True}, "use_relative_position"),
        ({"model_type": "bret"}, "did you mean 'bert'"),
        ({"model_type": 3}, "model_type"),
        ({"architectures": "BertModel"}, "architectures"),
        ({"id2label": {"0": "a", "2": "b"}}, "1 is missing"),
        ({"id2label": {"0": None}}, "id2label"),
        ({"id2label": {"0": "a", "1": "b", "2": "a"}}, "id2label calls two classes 'a'"),
        ({"id2label": {"0": "0", "1": 0}}, "id2label calls two classes '0'"),
        ({"num_labels": 3, "id2label": {"0": "a"}}, "num_labels is 3"),
        ({"problem_type": "clustering"}, "problem_type"),
        ({"architectures": ["BertForMaskedLM"], "tie_word_embeddings": False}, "tie_word"),
        ({"model_type": "bertsmith"}, "bertsmith must be a table"),
    ],
)
def test_a_value_that_cannot_be_meant_is_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spec_from_config(BERT | change)


def test_albert_groups_between_one_and_all_are_refused() -> None:
    albert = config_from_spec("albert", VARIANTS["albert"].spec)
    with pytest.raises(ConfigError, match="num_hidden_groups = 2"):
        spec_from_config(albert | {"num_hidden_groups": 2})
    with pytest.raises(ConfigError, match="inner_group_num must be 1"):
        spec_from_config(albert | {"inner_group_num": 2})


def test_harmless_unknown_keys_are_listed() -> None:
    reading = spec_from_config(BERT | {"our_note": {"deep": [1]}, "a": None})
    assert reading.unknown_keys == ("a", "our_note")


@pytest.mark.parametrize(
    ("config", "variant"),
    [
        ({"hidden_size": 8, "type_vocab_size": 2}, "bert"),
        ({"architectures": ["RobertaForMaskedLM"]}, "roberta"),
        ({"use_relative_position": True, "max_relative_position": 9}, "nezha"),
        ({"num_hidden_groups": 1, "embedding_size": 4}, "albert"),
    ],
)
def test_old_configs_without_a_type_are_recognized(config: dict[str, object], variant: str) -> None:
    shape = {
        "vocab_size": 30,
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    assert spec_from_config(shape | config).variant.name == variant


def test_a_config_that_could_be_of_two_families_is_refused() -> None:
    with pytest.raises(ConfigError, match="model_type"):
        spec_from_config({"hidden_size": 8, "pad_token_id": 1})


def test_two_spellings_that_disagree_are_refused() -> None:
    distil = config_from_spec("distilbert", VARIANTS["distilbert"].spec)
    assert spec_from_config(distil | {"hidden_size": 768}).spec.hidden == 768
    with pytest.raises(ConfigError, match="dim = 768 and hidden_size = 512"):
        spec_from_config(distil | {"hidden_size": 512})


@pytest.mark.parametrize("variant", ["bert", "roberta", "albert", "electra", "distilbert"])
@pytest.mark.parametrize("kind", ["sequence", "token"])
def test_labels_go_there_and_back_through_transformers(
    variant: str, kind: str, tmp_path: Any
) -> None:
    spec = _small(variant)
    head = Head(kind=kind, outputs=3, dropout=0.25)
    if kind not in VARIANTS[variant].config.head_dropout:
        head = replace(head, dropout=None)
    labels = Labels(names=("no", "yes", "?"), problem="multi_label_classification")
    config = config_from_spec(variant, spec, heads=[head], labels=labels)
    theirs = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    assert theirs.num_labels == 3
    theirs.save_pretrained(tmp_path)
    again = transformers.AutoConfig.from_pretrained(tmp_path).to_dict()
    reading = spec_from_config(again)
    assert (reading.heads, reading.labels, reading.unknown_keys) == ((head,), labels, ())
    assert replace(reading.spec, pooler=spec.pooler) == spec


@pytest.mark.parametrize("variant", ["bert", "roberta", "albert", "electra", "distilbert"])
@pytest.mark.parametrize("kinds", [(), ("masked_lm",), ("sequence",)])
@torch.no_grad()
def test_what_we_write_loads_in_transformers_without_a_missing_tensor(
    variant: str, kinds: tuple[str, ...], tmp_path: Any
) -> None:
    from safetensors.torch import save_file

    model = build(variant, _small(variant), heads=kinds)
    config = config_from_spec(variant, model.spec, heads=model.head_specs)
    save_file(published_state(model), tmp_path / "model.safetensors", {"format": "pt"})
    transformers.AutoConfig.for_model(**config).save_pretrained(tmp_path)
    architecture = getattr(transformers, config["architectures"][0])
    theirs, info = architecture.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    poolers = {"pooler.weight", "pooler.bias", "pooler.dense.weight", "pooler.dense.bias"}
    assert {key.split(".", 1)[1] for key in info["unexpected_keys"]} <= poolers
    tokens = theirs.get_input_embeddings().weight
    assert torch.equal(tokens, model.encoder.embeddings.tokens.weight)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5000),
    st.sampled_from([10**12, -(10**12), 2**63, 10**400, 0, 1]),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["gelu", "absolute", "relative_key", "bert", "albert", "LABEL_0"]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), max_size=3),
)
KEYS = sorted(
    {key for name in VARIANTS for key in config_from_spec(name, VARIANTS[name].spec)}
    | {
        "model_type",
        "architectures",
        "id2label",
        "num_labels",
        "problem_type",
        "auto_map",
        "is_decoder",
        "bertsmith",
        "position_embedding_type",
        "trust_remote_code",
        "_attn_implementation_internal",
        "tie_word_embeddings",
        "classifier_dropout",
        "rope_theta",
        "pruned_heads",
    }
)


@settings(
    max_examples=10_000 if LONG else 300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.sampled_from(sorted(VARIANTS)),
    st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), VALUES, max_size=5),
    st.sets(st.sampled_from(KEYS), max_size=2),
)
def test_any_config_is_a_valid_model_or_a_config_error(
    variant: str, changes: dict[str, object], gone: set[str]
) -> None:
    config = config_from_spec(variant, _small(variant)) | changes
    for key in gone:
        config.pop(key, None)
    try:
        reading = spec_from_config(config)
    except ConfigError:
        return
    model = build(reading.variant, reading.spec, heads=reading.heads, device="meta")
    assert sum(p.numel() for p in model.parameters()) < 21e9
    again = spec_from_config(
        config_from_spec(reading.variant, reading.spec, heads=reading.heads, labels=reading.labels)
    )
    assert again.variant == reading.variant
    assert again.heads == reading.heads


@settings(max_examples=2_000 if LONG else 100, deadline=None)
@given(
    st.recursive(
        VALUES,
        lambda inner: (
            st.dictionaries(
                st.sampled_from(
                    [
                        "variant",
                        "spec",
                        "heads",
                        "positions",
                        "kind",
                        "rows",
                        "first",
                        "clip",
                        "hidden",
                        "outputs",
                    ]
                ),
                inner,
                max_size=4,
            )
            | st.lists(inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_any_section_of_our_own_is_read_or_refused(own: object) -> None:
    try:
        reading = spec_from_config({"model_type": "bertsmith", "bertsmith": own})
    except ConfigError:
        return
    assert reading.variant in VARIANTS


@given(VALUES)
def test_a_config_that_is_no_table_is_refused(config: Any) -> None:
    with pytest.raises(ConfigError):
        spec_from_config(config)


def _small(variant: str) -> Spec:
    spec = VARIANTS[variant].spec
    positions = replace(spec.positions, rows=20) if spec.longest else spec.positions
    wide = "embedding" in VARIANTS[variant].config.keys
    return replace(
        SMALL,
        positions=positions,
        embedding=8 if wide else 16,
        **{
            name: getattr(spec, name)
            for name in (
                "segments",
                "norm_eps",
                "pooler",
                "pad_id",
                "sharing",
                "projected",
                "activation",
            )
        },
    )
