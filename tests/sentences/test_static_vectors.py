"""Static vectors: every token once through the model, PCA, weights by frequency."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folder_models import tiny_model, tiny_tokenizer

import bertsmith
from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.static import save_static
from bertsmith.folders.write import save_model
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.runtime.loading import LoadedModel
from bertsmith.sentences.static import StaticSettings, static_table, token_counts

TEXTS = ["a b a", "a c 字", "d a zz"]


@pytest.fixture
def model(tmp_path: Path) -> LoadedModel:
    save_model(tiny_model(), tiny_tokenizer(), tmp_path / "m", sentence=SentenceSettings())
    return bertsmith.load(tmp_path / "m", precision="fp32")


def test_counts_are_those_of_the_text(model: LoadedModel) -> None:
    counts = token_counts(model.tokenizer, iter(TEXTS))
    named = {model.tokenizer.id_to_token(i): int(n) for i, n in enumerate(counts) if n}
    assert named == {"a": 4, "b": 1, "c": 1, "字": 1, "d": 1, "[UNK]": 1}


def test_the_table_is_the_formula(model: LoadedModel) -> None:
    counts = token_counts(model.tokenizer, TEXTS)
    made = static_table(model, model.tokenizer, StaticSettings(width=5), counts)
    words = [model.tokenizer.id_to_token(i) for i in range(20)]
    used = [i for i, word in enumerate(words) if word not in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]
    rows = made.table.numpy()
    assert not rows[[0, 2, 3, 4]].any()
    x = model.encode_ids([np.array([2, i, 3], np.int32) for i in used]).astype(float)
    centered = x - x.mean(axis=0)
    _, s, vt = np.linalg.svd(centered, full_matrices=False)
    weight = 1e-4 / (1e-4 + counts[used] / counts.sum())
    expected = (centered @ vt[:5].T) * weight[:, None]
    signs = np.sign((expected * rows[used]).sum(axis=0))
    np.testing.assert_allclose(rows[used], expected * signs, atol=1e-5)
    assert made.explained == pytest.approx(float((s[:5] ** 2).sum() / (s**2).sum()))
    assert (made.tokens, made.seen) == (16, 6)


def test_without_a_text_early_tokens_weigh_less(model: LoadedModel) -> None:
    plain = static_table(model, model.tokenizer, StaticSettings(width=5))
    heavy = static_table(model, model.tokenizer, StaticSettings(width=5, smoothing=1e6))
    ratio = (plain.table.norm(dim=1) / heavy.table.norm(dim=1)).numpy()[[1, *range(5, 20)]]
    assert (np.diff(ratio) > 0).all()


def test_a_saved_table_encodes_by_averaging(model: LoadedModel, tmp_path: Path) -> None:
    made = static_table(model, model.tokenizer, StaticSettings(width=4))
    save_static(made.table, model.tokenizer, tmp_path / "s", settings=made.settings)
    static = bertsmith.load(tmp_path / "s")
    rows = made.table[[model.tokenizer.token_to_id(word) for word in ("a", "b", "a")]]
    mean = rows.mean(dim=0)
    np.testing.assert_allclose(static.encode("a b a"), mean / mean.norm(), atol=1e-6)
    np.testing.assert_array_equal(static.encode(""), np.zeros(4))
    with pytest.raises(
        FolderError,
        match="and no encoder, which cannot predict",
    ):
        static.predict(["a"])
    static.close()


def test_what_cannot_be_made_is_refused(model: LoadedModel) -> None:
    with pytest.raises(ConfigError, match="17 columns cannot be made of vectors of 16 columns"):
        static_table(model, model.tokenizer, StaticSettings(width=17))
    with pytest.raises(ConfigError, match="must be positive"):
        StaticSettings(smoothing=0.0)
    nothing = token_counts(model.tokenizer, [])
    with pytest.raises(ConfigError, match="has none"):
        static_table(model, model.tokenizer, StaticSettings(width=3), nothing)
