"""`bertsmith.load(DIR).predict`: a fine-tuned folder answers, a plain one says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_finetuning import RECIPE, finetuned_folder, rows

import bertsmith
from bertsmith.errors import FolderError, TextError
from bertsmith.folders.convert import convert
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.training.kinds.labeled.recipe import TextVectorSettings


def test_a_loaded_folder_answers_and_gives_vectors(tmp_path: Path) -> None:
    folder = finetuned_folder(tmp_path / "tiny")
    texts = [example.texts[0] for example in rows(20, seed=4)]
    model = bertsmith.load(folder)
    assert model.predict(texts) == load_predictor(folder).predict(texts)
    assert model.predictor is model.predictor  # loaded once
    assert model.encode(texts).shape == (20, 32)
    with pytest.raises(TextError, match=r"give \[text\]"):
        model.predict("one text")
    plain = bertsmith.load(tmp_path / "tiny-source")
    assert plain.encode(texts).shape == (20, 32)
    with pytest.raises(FolderError, match="was not fine-tuned"):
        plain.predict(texts)


def test_a_folder_that_was_rewritten_answers_as_before(tmp_path: Path) -> None:
    """With a head of its own, which no published model has."""
    recipe = RECIPE.model_copy(update={"vector": TextVectorSettings(pooling="mean")})
    folder = finetuned_folder(tmp_path / "tiny", recipe=recipe)
    texts = [example.texts[0] for example in rows(20, seed=4)]
    before = load_predictor(folder).predict(texts)
    convert(folder, tmp_path / "clean")
    assert load_predictor(tmp_path / "clean").predict(texts) == before
