"""Texts to vectors through the public API, on the real all-MiniLM-L6-v2."""

import logging

import numpy as np
import pytest
import torch

import bertsmith
from bertsmith.errors import ConfigError, FolderError, HardwareError, TextError
from bertsmith.models.sentence_spec import DenseLayer, SentenceSettings
from bertsmith.nn.sentence_head import similarity
from bertsmith.runtime import embedder as module
from bertsmith.runtime.embedder import Embedder, EncodingAccount
from bertsmith.runtime.engines.engine import EagerEngine

TEXTS = [
    "a cat",
    "",
    "two dogs and a bird",
    "你好，世界",
    "a cat",
    "x" * 3000,
    "nul\0byte",
    "\ud800",
]


@pytest.fixture(scope="module")
def minilm():
    return bertsmith.load("all-MiniLM-L6-v2", precision="fp32")


def test_the_line_of_the_readme(minilm):
    vectors = bertsmith.load("all-MiniLM-L6-v2").encode(["a", "b"])
    assert isinstance(vectors, np.ndarray)
    assert vectors.shape == (2, 384)
    assert vectors.dtype == np.float32


def test_order_is_kept_and_neighbors_change_nothing(minilm):
    together = minilm.encode(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        assert np.abs(minilm.encode([text])[0] - vector).max() < 1e-6


def test_vectors_are_finite_and_of_length_one_for_any_text(minilm):
    vectors = minilm.encode(TEXTS)
    assert np.isfinite(vectors).all()
    assert np.abs(np.linalg.norm(vectors, axis=1) - 1.0).max() < 1e-5


def test_a_single_string_gives_a_single_vector(minilm):
    assert np.array_equal(minilm.encode("a cat"), minilm.encode(["a cat"])[0])


def test_nothing_in_gives_nothing_out(minilm):
    assert minilm.encode([]).shape == (0, 384)


def test_equal_texts_are_computed_once(minilm, monkeypatch):
    sizes = []
    hidden = EagerEngine.hidden

    def counted(self, batch, rows=None):
        sizes.append(len(batch.texts))
        return hidden(self, batch, rows)

    monkeypatch.setattr(EagerEngine, "hidden", counted)
    account = EncodingAccount()
    vectors = minilm.encode(["same", "other", "same", "same"], account=account)
    assert sum(sizes) == 2
    assert np.array_equal(vectors[0], vectors[2])
    assert (account.texts, account.distinct) == (4, 2)
    minilm.encode(["same"], account=account)
    assert (account.texts, account.distinct) == (5, 3), "several calls add up"


def test_what_was_cut_is_counted_and_said(minilm, caplog):
    long = "word " * 1000
    with caplog.at_level(logging.WARNING, logger="bertsmith.runtime.embedder"):
        account = EncodingAccount()
        minilm.encode(["short", long, long], account=account)
    assert account.cut_texts == 2
    assert account.cut_tokens == 2 * (1000 - 254)
    assert "2 of 3 texts were longer than 256 tokens" in caplog.text


def test_chunks_give_the_same_vectors_in_order(minilm, monkeypatch):
    texts = [f"sentence number {i % 37} of many" for i in range(100)]
    whole = minilm.encode(texts)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert np.abs(minilm.encode(texts) - whole).max() < 1e-6
    account = EncodingAccount()
    blocks = list(minilm.encode_stream(iter(texts), account=account))
    assert max(map(len, blocks)) == 7
    assert np.abs(np.concatenate(blocks) - whole).max() < 1e-6
    assert account.texts == 100


def test_progress_counts_every_text_including_repeats(minilm, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 5)
    seen = []
    minilm.encode(["a", "b", "a"] * 10, progress=seen.append)
    assert seen[-1] == 30
    assert seen == sorted(seen)
    seen.clear()
    list(minilm.encode_stream(["a", "b", "a"] * 10, progress=seen.append))
    assert seen[-1] == 30


def test_what_is_no_string_is_named(minilm):
    with pytest.raises(TextError, match="must be a string, not int: 3"):
        minilm.encode(["a", 3])


def test_similarity_takes_texts_or_vectors(minilm):
    by_text = minilm.similarity(["a dog"], ["a puppy", "a car"])
    by_vector = minilm.similarity(minilm.encode(["a dog"]), minilm.encode(["a puppy", "a car"]))
    assert by_text.shape == (1, 2)
    assert by_text[0, 0] > by_text[0, 1]
    assert np.allclose(by_text, by_vector)


def test_a_prompt_stands_before_the_text(minilm):
    settings = SentenceSettings(prompts={"query": "find: "}, max_length=256, normalize=True)
    prompted = Embedder(minilm.host, settings)
    assert np.allclose(
        prompted.encode(["x"], prompt="query"), minilm.encode(["find: x"]), atol=1e-6
    )
    with pytest.raises(ConfigError, match="did you mean 'query'"):
        prompted.encode(["x"], prompt="qurey")


def test_a_prompt_can_stay_out_of_the_pooling(minilm):
    settings = SentenceSettings(
        prompts={"query": "find this: "}, max_length=256, pools_prompt=False
    )
    kept = Embedder(minilm.host, settings)
    vector = kept.encode(["x y"], prompt="query")[0]
    ids = torch.from_numpy(minilm.tokenizer.fast_ids(["find this: x y"], 256)[0][0]).long()
    from bertsmith.nn import Inputs, Layout

    with torch.inference_mode():
        rows = minilm.model.encoder(Inputs(ids, Layout.of([len(ids)]))).hidden
    assert np.allclose(vector, rows[4:].mean(0).numpy(), atol=1e-5)  # [CLS] find this : | x y [SEP]


def test_lowercase_of_the_settings_is_obeyed(minilm):
    settings = SentenceSettings(lowercase=True, normalize=True, max_length=256)
    lower = Embedder(minilm.host, settings)
    assert np.allclose(lower.encode(["İ"]), minilm.encode(["İ".lower()]), atol=1e-6)


def test_dense_layers_follow_the_pooling():
    weight, bias = torch.randn(3, 8), torch.randn(3)
    dense = DenseLayer(inputs=8, outputs=3, activation="tanh", weight=weight, bias=bias)
    rows = torch.randn(5, 4)
    settings = SentenceSettings(pooling=("first", "mean"), dense=(dense,), normalize=True)
    pooled = torch.stack([torch.cat([part[0], part.mean(0)]) for part in (rows[:2], rows[2:])])
    expected = torch.nn.functional.normalize(torch.tanh(pooled @ weight.T + bias), dim=1)
    assert torch.allclose(settings.head()(rows, [2, 3]), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities_are_what_their_names_say(kind):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 5)).astype(np.float32), rng.normal(size=(2, 5)).astype(np.float32)
    by_hand = {
        "cosine": lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y),
        "dot": lambda x, y: x @ y,
        "euclidean": lambda x, y: -np.linalg.norm(x - y),
        "manhattan": lambda x, y: -np.abs(x - y).sum(),
    }[kind]
    expected = np.array([[by_hand(x, y) for y in b] for x in a])
    assert np.allclose(similarity(kind, a, b), expected, atol=1e-5)


def test_a_zero_vector_is_like_nothing():
    assert similarity("cosine", np.zeros((1, 4)), np.ones((1, 4)))[0, 0] == 0.0


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"precision": "fp23"}, ConfigError, "did you mean 'fp32'"),
        ({"device": "gpu"}, HardwareError, "'gpu' is not a device"),
        ({"precision": "fp16"}, HardwareError, "fp16 is for GPUs"),
    ],
)
def test_wrong_settings_are_named(settings, error, said):
    with pytest.raises(error, match=said):
        bertsmith.load("all-MiniLM-L6-v2", **settings)


def test_an_unknown_model_is_named():
    with pytest.raises(FolderError, match="no-such-model"):
        bertsmith.load("no-such-model")
