"""Layer mixes, dense layers with a residual, static vectors: the same in sentence-transformers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from folder_models import tiny_model, tiny_tokenizer

import bertsmith
from bertsmith.errors import FolderError
from bertsmith.folders.read import load_model
from bertsmith.folders.static import load_static, save_static
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings
from bertsmith.sentences.transform.flow import FlowSettings, fit_flow
from bertsmith.sentences.transform.folder import save_with
from bertsmith.sentences.transform.moments import moments_of
from bertsmith.sentences.transform.whitening import whitening

pytestmark = pytest.mark.usefixtures("edited_folders")

sentence_transformers = pytest.importorskip("sentence_transformers")

TEXTS = ["a b c", "c 字", "", "a a b d 词 e f g a", "zebra a"]


def theirs(path: Path, **options: object) -> np.ndarray:
    model = sentence_transformers.SentenceTransformer(str(path), device="cpu")
    return model.encode(TEXTS, **options)


def dense(inputs: int, outputs: int, seed: int, *, residual: bool) -> DenseLayer:
    generator = torch.Generator().manual_seed(seed)
    through = torch.randn(outputs, inputs, generator=generator)
    return DenseLayer(
        inputs=inputs,
        outputs=outputs,
        activation="tanh",
        residual=residual,
        weight=torch.randn(outputs, inputs, generator=generator),
        bias=torch.randn(outputs, generator=generator),
        residual_weight=through if residual and inputs != outputs else None,
    )


SETTINGS = {
    "first and last layer": SentenceSettings(layer_mix=(0.0, 1.0, 1.0)),
    "one layer": SentenceSettings(layer_mix=(0.0, 1.0, 0.0), pooling=("first", "mean")),
    "embeddings": SentenceSettings(layer_mix=(1.0, 0.0, 0.0), normalize=True),
    "uneven": SentenceSettings(layer_mix=(0.5, -1.5, 3.0)),
    "residual": SentenceSettings(dense=(dense(16, 16, 0, residual=True),)),
    "residual to another width": SentenceSettings(dense=(dense(16, 5, 1, residual=True),)),
    "everything": SentenceSettings(
        layer_mix=(0.0, 2.0, 1.0),
        dense=(dense(16, 8, 2, residual=False), dense(8, 8, 3, residual=True)),
        normalize=True,
    ),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_saved_folder_gives_the_same_vectors(settings: SentenceSettings, tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=settings)
    ours = bertsmith.load(tmp_path / "m", precision="fp32")
    np.testing.assert_allclose(ours.encode(TEXTS), theirs(tmp_path / "m"), atol=1e-5)
    again = load_model(tmp_path / "m").sentence
    assert again.layer_mix == settings.layer_mix
    assert [layer.residual for layer in again.dense] == [layer.residual for layer in settings.dense]


def test_what_sentence_transformers_saves_is_read(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SETTINGS["everything"])
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "m"), device="cpu")
    model.save(str(tmp_path / "theirs"))
    ours = bertsmith.load(tmp_path / "theirs", precision="fp32")
    np.testing.assert_allclose(ours.encode(TEXTS), model.encode(TEXTS), atol=1e-5)


def test_a_mix_that_sentence_transformers_would_ignore_is_refused(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SETTINGS["uneven"])
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config.pop("output_hidden_states") is True
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(FolderError, match="output_hidden_states"):
        bertsmith.load(tmp_path / "m")


def test_layers_above_the_mix_are_not_computed(tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SETTINGS["one layer"])
    model = bertsmith.load(tmp_path / "m", precision="fp32")
    before = model.encode(TEXTS)
    with torch.no_grad():
        for parameter in model.model.encoder.blocks[1].parameters():
            parameter.fill_(float("nan"))
    np.testing.assert_array_equal(model.encode(TEXTS), before)


@pytest.mark.parametrize("normalize", [False, True])
def test_static_vectors_are_the_same(normalize: bool, tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    table = torch.randn(tokenizer.vocab_size, 6, generator=torch.Generator().manual_seed(0))
    settings = SentenceSettings(normalize=normalize, dense=(dense(6, 4, 1, residual=False),))
    save_static(table, tokenizer, tmp_path / "s", settings=settings)
    ours = bertsmith.load(tmp_path / "s")
    assert ours.engine == "static"
    assert ours.dimension == 4
    np.testing.assert_allclose(ours.encode(TEXTS), theirs(tmp_path / "s"), atol=1e-6)
    assert torch.equal(load_static(tmp_path / "s").table, table)


def test_a_static_folder_of_theirs_is_read(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    save_static(
        torch.eye(tokenizer.vocab_size), tokenizer, tmp_path / "s", settings=SentenceSettings()
    )
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "s"), device="cpu")
    model.save(str(tmp_path / "theirs"))
    ours = bertsmith.load(tmp_path / "theirs")
    np.testing.assert_allclose(ours.encode(TEXTS), model.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"normalize": True},
        {"truncate_dim": 3},
        {"truncate_dim": 3, "normalize": True, "batch_size": 1},
    ],
)
def test_arguments_of_encode(options: dict[str, int], tmp_path: Path) -> None:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    model = bertsmith.load(tmp_path / "m", precision="fp32")
    names = {"normalize": "normalize_embeddings"}
    expected = theirs(tmp_path / "m", **{names.get(key, key): options[key] for key in options})
    np.testing.assert_allclose(model.encode(TEXTS, **options), expected, atol=1e-5)
    streamed = np.concatenate(list(model.encode_stream(iter(TEXTS), **options)))
    np.testing.assert_allclose(streamed, expected, atol=1e-5)


@pytest.mark.parametrize("correction", ["whitening", "flow"])
def test_corrected_vectors_are_those_of_float64(correction: str, tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    table = torch.randn(tokenizer.vocab_size, 16, generator=torch.Generator().manual_seed(0))
    save_static(table, tokenizer, tmp_path / "m", settings=SentenceSettings())
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(list("abcdefghijklm"), 6)) for _ in range(300)]
    vectors = bertsmith.load(tmp_path / "m").encode(texts)
    if correction == "whitening":
        found = whitening(moments_of([vectors], 16), 9)
        layers, exact = (found.layer(),), found(vectors)
    else:
        flow = fit_flow([vectors], 16, FlowSettings(epochs=3, hidden=6, keep=9)).flow
        layers, exact = flow.layers(), flow(torch.from_numpy(vectors).double()).numpy()
    save_with(tmp_path / "m", SentenceSettings(dense=layers, normalize=True), tmp_path / "c")
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    ours = bertsmith.load(tmp_path / "c").encode(texts)
    peer = sentence_transformers.SentenceTransformer(str(tmp_path / "c"), device="cpu")
    np.testing.assert_allclose(ours, exact, atol=1e-5)
    np.testing.assert_allclose(peer.encode(texts), exact, atol=1e-5)
