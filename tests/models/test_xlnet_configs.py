"""XLNet's config.json: what is read, and what is refused by name."""

from __future__ import annotations

import pytest

from bertsmith.errors import ConfigError
from bertsmith.models import SegmentRecurrent, config_from_spec, spec_from_config
from bertsmith.models.variants.xlnet import SPEC
from bertsmith.runtime.engines.native import why_not

BASE = {  # of the published xlnet-base-cased
    "architectures": ["XLNetLMHeadModel"],
    "attn_type": "bi",
    "bi_data": False,
    "bos_token_id": 1,
    "clamp_len": -1,
    "d_head": 64,
    "d_inner": 3072,
    "d_model": 768,
    "dropout": 0.1,
    "end_n_top": 5,
    "eos_token_id": 2,
    "ff_activation": "gelu",
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "mem_len": None,
    "model_type": "xlnet",
    "n_head": 12,
    "n_layer": 12,
    "pad_token_id": 5,
    "reuse_len": None,
    "same_length": False,
    "start_n_top": 5,
    "summary_activation": "tanh",
    "summary_last_dropout": 0.1,
    "summary_type": "last",
    "summary_use_proj": True,
    "untie_r": True,
    "vocab_size": 32000,
}


def test_the_published_base_is_the_spec() -> None:
    reading = spec_from_config(BASE)
    assert reading.spec == SPEC
    assert reading.unknown_keys == ()
    assert [head.kind for head in reading.heads] == ["language_model"]


def test_a_largest_distance_goes_there_and_back() -> None:
    spec = spec_from_config({**BASE, "clamp_len": 40}).spec
    assert spec.positions == SegmentRecurrent(clamp=40)
    assert config_from_spec("xlnet", spec)["clamp_len"] == 40


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("attn_type", "uni"),
        ("untie_r", False),
        ("same_length", True),
        ("bi_data", True),
        ("summary_type", "first"),
        ("summary_use_proj", False),
        ("summary_activation", "relu"),
        ("d_head", 32),
        ("clamp_len", 0),
        ("ff_activation", "mish"),
    ],
)
def test_what_would_change_the_numbers_is_refused_by_name(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        spec_from_config({**BASE, key: value})


def test_a_config_of_another_family_is_refused() -> None:
    with pytest.raises(ConfigError, match="d_model"):
        spec_from_config({"model_type": "xlnet", "vocab_size": 10, "num_hidden_layers": 2})
    with pytest.raises(ConfigError, match="transfo-xl"):
        spec_from_config({**BASE, "model_type": "transfo-xl"})


def test_the_native_kernel_refuses_it() -> None:
    assert why_not(SPEC)
