"""`bertsmith.load(DIR).predict`: a fine-tuned folder answers, a plain one says why it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from finetuned_folder import finetuned_folder, word_rows

import bertsmith
from bertsmith.errors import FolderError, TextError
from bertsmith.runtime.predictor import load_predictor


def test_a_loaded_folder_answers_and_gives_vectors(tmp_path: Path) -> None:
    folder = finetuned_folder(tmp_path / "tiny")
    texts = [example.texts[0] for example in word_rows(20, seed=4)]
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
