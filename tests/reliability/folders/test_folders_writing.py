"""Folders of models that write: whatever config and tensors say, a model or a declared error."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch
from folder_models import tiny_model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from bertsmith.errors import BertsmithError, ConfigError, FolderError
from bertsmith.folders.read import load_model
from bertsmith.folders.write import save_model

pytestmark = pytest.mark.usefixtures("edited_folders")

STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2, 3, 16, 10**12, 2**31, 2**63, 0.5, 1e12]),
    st.text(max_size=8),
    st.lists(st.integers(-3, 3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
MORE = ["is_decoder", "tie_word_embeddings", "pad_token_id", "n_inner", "architectures"]


@pytest.fixture(scope="module", params=["gpt", "gpt2", "bart"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param) / "m"
    save_model(tiny_model(request.param, ["language_model"]), None, path)
    (path / "good.json").write_bytes((path / "config.json").read_bytes())
    (path / "good.tensors").write_bytes((path / "model.safetensors").read_bytes())
    load_model(path)
    return path


def good(folder: Path) -> dict[str, object]:
    """The config and the tensors as they were saved; returns the config."""
    (folder / "model.safetensors").write_bytes((folder / "good.tensors").read_bytes())
    (folder / "config.json").write_bytes((folder / "good.json").read_bytes())
    found: dict[str, object] = json.loads((folder / "good.json").read_text())
    return found


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_config_gives_a_valid_model_or_a_declared_error(
    folder: Path, data: st.DataObject
) -> None:
    config = good(folder)
    keys = st.sampled_from([*sorted(config), *MORE])
    config |= data.draw(st.dictionaries(keys, STRANGE, min_size=1, max_size=3))
    dropped = data.draw(st.sets(keys, max_size=2))
    left = {key: value for key, value in config.items() if key not in dropped}
    (folder / "config.json").write_text(json.dumps(left), encoding="utf-8")
    start = time.thread_time()
    try:
        loaded = load_model(folder)
    except (ConfigError, FolderError):
        loaded = None
    assert loaded is None or sum(p.numel() for p in loaded.model.parameters()) < 30_000
    assert time.thread_time() - start < 1.0


HUGE = {
    "gpt2": [{"n_layer": 1000}, {"n_inner": 2**62}, {"n_positions": 10**15}, {"n_embd": 65536}],
    "gpt": [{"n_layer": 10**9}, {"n_embd": 65536}, {"vocab_size": 10**12}],
    "bart": [
        {"decoder_layers": 1000},
        {"decoder_layers": 10**9},
        {"decoder_ffn_dim": 2**62},
        {"decoder_attention_heads": 3},
        {"decoder_start_token_id": 10**6},
        {"max_position_embeddings": 10**15},
    ],
}


def test_giants_and_impossible_decoders_are_refused(folder: Path) -> None:
    good(folder)
    variant = load_model(folder).model.variant.name
    for changes in HUGE[variant]:
        (folder / "config.json").write_text(json.dumps(good(folder) | changes))
        with pytest.raises(BertsmithError):
            load_model(folder)


@pytest.mark.parametrize("shape", [(), (1,), (16, 47), (48, 16), (16, 48, 1), (15, 48)])
def test_joined_and_transposed_tensors_of_other_shapes_are_named(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    save_model(tiny_model("gpt2", ["language_model"]), None, tmp_path / "m")
    state = load_file(tmp_path / "m" / "model.safetensors")
    name = "transformer.h.0.attn.c_attn.weight"
    assert state[name].shape == (16, 48)
    state[name] = torch.zeros(shape)
    save_file(state, tmp_path / "m" / "model.safetensors")
    with pytest.raises(
        BertsmithError, match=r"h\.0\.attn\.c_attn\.weight is .* should be \(16, 48\)"
    ):
        load_model(tmp_path / "m")


def test_a_bias_that_is_no_row_is_named(tmp_path: Path) -> None:
    save_model(tiny_model("bart", ["language_model"]), None, tmp_path / "m")
    state = load_file(tmp_path / "m" / "model.safetensors")
    state["final_logits_bias"] = state["final_logits_bias"][0].clone()
    save_file(state, tmp_path / "m" / "model.safetensors")
    with pytest.raises(
        BertsmithError, match=r"final_logits_bias is \(20,\) and should be \(1, 20\)"
    ):
        load_model(tmp_path / "m")
