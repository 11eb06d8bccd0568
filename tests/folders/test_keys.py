"""The keys of a folder follow whatever decides a vector or a prediction, and nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from folder_models import tiny_model, tiny_tokenizer

from bertsmith.errors import BertsmithError, ConfigError, FolderError
from bertsmith.folders.describe import describe
from bertsmith.folders.keys import model_key, sentence_key
from bertsmith.folders.read import load_model, read_folder
from bertsmith.folders.static import load_static, save_static
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings

pytestmark = pytest.mark.usefixtures("edited_folders")

WHITENING = DenseLayer(
    inputs=16,
    outputs=16,
    activation="identity",
    residual=True,
    weight=torch.eye(16),
    bias=torch.zeros(16),
)
PLAIN = SentenceSettings(dense=(WHITENING,), layer_mix=(0.0, 1.0, 1.0))


def saved(path: Path, settings: SentenceSettings = PLAIN) -> Path:
    save_model(tiny_model(), tiny_tokenizer(), path, sentence=settings)
    return path


def test_equal_folders_have_equal_keys(tmp_path: Path) -> None:
    key = sentence_key(saved(tmp_path / "a"))
    assert key == sentence_key(saved(tmp_path / "b"))
    (tmp_path / "b" / "README.md").write_text("about this model")
    (tmp_path / "b" / "bertsmith.json").write_text("{}")
    assert key == sentence_key(tmp_path / "b")


CHANGES = {
    "pooling": replace(PLAIN, pooling=("first",)),
    "normalize": replace(PLAIN, normalize=True),
    "length": replace(PLAIN, max_length=5),
    "prompt": replace(PLAIN, prompts={"query": "q: "}),
    "mix": replace(PLAIN, layer_mix=(1.0, 0.0, 1.0)),
    "dense": replace(PLAIN, dense=(replace(WHITENING, weight=2 * torch.eye(16)),)),
    "residual": replace(PLAIN, dense=(replace(WHITENING, residual=False),)),
}


@pytest.mark.parametrize("settings", CHANGES.values(), ids=CHANGES.keys())
def test_another_vector_has_another_key(settings: SentenceSettings, tmp_path: Path) -> None:
    assert sentence_key(saved(tmp_path / "a")) != sentence_key(saved(tmp_path / "b", settings))


def test_a_changed_byte_of_weights_or_vocabulary_changes_the_key(tmp_path: Path) -> None:
    key = sentence_key(saved(tmp_path / "a"))
    for name in ("model.safetensors", "vocab.txt", "3_Dense/model.safetensors"):
        copy = tmp_path / name.replace("/", "_")
        shutil.copytree(tmp_path / "a", copy)
        data = bytearray((copy / name).read_bytes())
        data[-1] ^= 1
        (copy / name).write_bytes(data)
        assert sentence_key(copy) != key, name


def test_a_changed_shard_changes_both_keys(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a")
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    index = {"weight_map": {"any.weight": "part.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    keys = model_key(folder), sentence_key(folder)
    data = bytearray((folder / "part.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "part.safetensors").write_bytes(data)
    assert model_key(folder) != keys[0]
    assert sentence_key(folder) != keys[1]


def test_the_head_of_a_task_decides_predictions_alone(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a")
    keys = model_key(folder), sentence_key(folder)
    (folder / "bertsmith.json").write_text('{"task": {"name": "other"}}')
    assert model_key(folder) != keys[0]
    assert sentence_key(folder) == keys[1]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"layer_start": 3, "num_hidden_layers": 2}, "layer_start must be from 0 to 2"),
        ({"layer_start": 0, "num_hidden_layers": 5}, "mix is one of 5 layers"),
        ({"layer_start": 1, "num_hidden_layers": 2}, r"misshapen: layer_weights"),
        ({"layer_start": 0, "num_hidden_layers": 2, "x": 1}, "'x' is not understood"),
    ],
)
def test_a_mix_that_cannot_be_right_is_refused(
    config: dict[str, int], words: str, tmp_path: Path
) -> None:
    saved(tmp_path / "m")
    (tmp_path / "m" / "1_WeightedLayerPooling" / "config.json").write_text(json.dumps(config))
    with pytest.raises(BertsmithError, match=words):
        load_model(tmp_path / "m")


def test_a_mix_without_a_mean_or_of_another_depth_is_refused(tmp_path: Path) -> None:
    for mix in ((1.0, -1.0, 0.0), (0.0, 0.0, 0.0), (1.0, float("nan"), 0.0)):
        with pytest.raises(ConfigError, match="no weighted mean"):
            SentenceSettings(layer_mix=mix)
    with pytest.raises(ConfigError, match="2 weights, and the model 2 layers"):
        saved(tmp_path / "m", SentenceSettings(layer_mix=(1.0, 1.0)))
    assert not (tmp_path / "m").exists()


def test_the_description_names_modules_and_who_reads_them_otherwise(tmp_path: Path) -> None:
    about = describe(saved(tmp_path / "m"))
    assert about.modules == ("a mix of layers", "dense 16 to 16, identity + residual")
    assert "5.7" in about.problems[0]
    assert "text-embeddings-inference" in about.problems[0]
    assert describe(saved(tmp_path / "n", SentenceSettings())).problems == ()


def test_a_static_folder_is_described_and_is_no_encoder(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    save_static(
        torch.ones(20, 3), tokenizer, tmp_path / "s", settings=SentenceSettings(normalize=True)
    )
    about = describe(tmp_path / "s")
    assert (about.variant, about.vector_width, about.vocabulary, about.parameters) == (
        "static",
        3,
        20,
        60,
    )
    with pytest.raises(FolderError, match="static vectors, one per token, and no encoder"):
        read_folder(tmp_path / "s")
    with pytest.raises(ConfigError, match="no row for each of the 20 tokens"):
        save_static(torch.ones(7, 3), tokenizer, tmp_path / "t", settings=SentenceSettings())
    with pytest.raises(FolderError, match="not a folder of static vectors"):
        load_static(saved(tmp_path / "m"))
