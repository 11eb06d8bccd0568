"""Published ELMo folders: exact layers, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from elmo_fixture import CHARACTERS, PlainElmo, write_published

from bertsmith.classic.elmo.reader import ElmoReader
from bertsmith.errors import BertsmithError, ConfigError, FolderError, TensorMismatchError
from bertsmith.folders.word_encoders.published_elmo import read_published
from bertsmith.nn.pooling import LayerMix

SENTENCES = [
    ["The", "bank", "raised", "rates", "."],
    ["苹果", "很", "好吃"],
    ["a"],
    ["internationalizations", "naïve", "x" * 60, "end"],
    ["So", "kind", "of", "you", "to", "come", "again", "!"],
]


@pytest.mark.parametrize("highways", [0, 1, 2])
def test_all_layers_of_both_directions_equal_plain_sums_with_states_carried(
    tmp_path: Path, highways: int
) -> None:
    weights = write_published(tmp_path, highways=highways)
    plain = PlainElmo(weights, highways=highways)
    expected = [plain.sentence(sentence) for sentence in SENTENCES]
    reader = ElmoReader(read_published(tmp_path))
    first, states = reader.read_carried(SENTENCES[:2])
    second, _ = reader.read_carried(SENTENCES[2:], states)
    for found, wanted in zip([*first, *second], expected, strict=True):
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() < 1e-5
    assert plain.clipped > 20  # the clips were put to use


def test_sentences_of_a_batch_begin_with_empty_states_whatever_their_neighbors(
    tmp_path: Path,
) -> None:
    weights = write_published(tmp_path)
    reader = ElmoReader(read_published(tmp_path))
    found = reader.read([*SENTENCES, []])
    for sentence, layers in zip(SENTENCES, found, strict=False):
        assert np.abs(layers - PlainElmo(weights).sentence(sentence)).max() < 1e-5
    assert found[-1].shape == (3, 0, 14)


def test_words_that_are_cut_are_counted(tmp_path: Path) -> None:
    write_published(tmp_path)
    reader = ElmoReader(read_published(tmp_path))
    reader.read(SENTENCES)
    assert reader.cut == 2  # 21 and 60 bytes, of 18 that are read


def test_a_fresh_mix_is_the_mean_of_the_layers(tmp_path: Path) -> None:
    import torch

    layers = torch.randn(3, 4, 6)
    assert torch.allclose(LayerMix(3, layers.shape[-1])(layers), layers.mean(0), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("char_embed", (262, CHARACTERS)),
        ("CNN/W_cnn_1", (1, 2, CHARACTERS, 5)),
        ("RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0", (14, 47)),
    ],
)
def test_a_wrong_shape_is_refused_by_the_name_of_its_tensor(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    write_published(tmp_path)
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        del file[name]
        file.create_dataset(name, data=np.zeros(shape, dtype=np.float32))
    with pytest.raises(TensorMismatchError, match=f"(?s){name}.*not "):
        read_published(tmp_path)


def test_a_size_that_was_never_written_takes_no_memory(tmp_path: Path) -> None:
    write_published(tmp_path)
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        del file["char_embed"]
        file.create_dataset("char_embed", shape=(1 << 40, CHARACTERS), dtype="f4", chunks=True)
    with pytest.raises(TensorMismatchError, match="char_embed"):
        read_published(tmp_path)


def test_damage_is_refused_with_the_file_and_the_way_out(tmp_path: Path) -> None:
    weights = tmp_path / "weights.hdf5"
    write_published(tmp_path)
    with h5py.File(weights, "a") as file:
        file["CNN_proj/b_proj"][0] = np.nan
    with pytest.raises(TensorMismatchError, match="CNN_proj/b_proj holds values"):
        read_published(tmp_path)
    with h5py.File(weights, "a") as file:
        del file["CNN_proj/b_proj"]
    with pytest.raises(TensorMismatchError, match="no tensor CNN_proj/b_proj"):
        read_published(tmp_path)
    with h5py.File(weights, "a") as file:
        file["CNN_proj/b_proj"] = h5py.ExternalLink("other.hdf5", "/b")
    with pytest.raises(TensorMismatchError, match="CNN_proj/b_proj is a link"):
        read_published(tmp_path)
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    with pytest.raises(FolderError, match="no whole hdf5 file"):
        read_published(tmp_path)


def test_options_that_describe_no_model_are_refused(tmp_path: Path) -> None:
    write_published(tmp_path)
    path = tmp_path / "options.json"
    options = json.loads(path.read_text())
    path.write_text(json.dumps({"lstm": options["lstm"]}))
    with pytest.raises(FolderError, match="char_cnn"):
        read_published(tmp_path)
    options["lstm"]["dim"] = -4
    path.write_text(json.dumps(options))
    with pytest.raises(BertsmithError, match="hidden"):
        read_published(tmp_path)
    options["lstm"]["dim"] = 1 << 40
    path.write_text(json.dumps(options))
    with pytest.raises(ConfigError, match="hidden"):
        read_published(tmp_path)
