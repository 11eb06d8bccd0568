"""Advice on words to add, by hand on a toy corpus, and models grown by it."""

from __future__ import annotations

import pytest
import torch
from corpus_making import bert, make

from bertsmith.corpus.sources import find_sources
from bertsmith.corpus.vocabulary_advice import advise, count_words, count_words_of_files
from bertsmith.errors import ConfigError
from bertsmith.folders.read import load_model
from bertsmith.folders.vocabulary_growth import extend_model, grow_model, grow_tokenizer
from bertsmith.folders.write import save_model
from bertsmith.models.build import build
from bertsmith.models.variants import find
from bertsmith.text.learn import learn_vocabulary

# zoo: z ##o ##o (3 pieces), zoos: z ##o ##o ##s (4), playing: play ##ing (2), h2o: h ##2 ##o (3)
TEXT = "Zoo zoo ZOO zoos playing the cat h2o h2o h2o h2o. 我爱我爱\n" * 2
TOKENS = 2 * (3 * 3 + 4 + 2 + 1 + 1 + 4 * 3 + 1 + 4)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_the_figures_are_those_done_by_hand(text, tmp_path) -> None:
    corpus, _ = make(text, tmp_path / "out", segmenter="jieba")
    tokenizer = corpus.tokenizer()
    counts = count_words(corpus)
    assert counts == count_words_of_files(find_sources([text]), tokenizer)
    assert counts.tokens == TOKENS
    advice = advise(counts, tokenizer, top=1, min_count=2)
    (zoo,) = advice.suggestions
    assert (zoo.word, zoo.count, zoo.pieces, zoo.saved) == ("zoo", 6, ("z", "##o", "##o"), 12)
    assert advice.saved == 12 + 2 * 2  # zoos becomes zoo ##s as well
    assert advice.share == pytest.approx(16 / TOKENS)
    words = [one.word for one in advise(counts, tokenizer, min_count=2).suggestions]
    assert words == ["zoo", "zoos", "playing"]  # no numbers, no Chinese, nothing it knows
    assert [one.word for one in advise(counts, tokenizer, min_count=3).suggestions] == ["zoo"]


def test_the_saving_is_what_the_grown_tokenizer_saves(text, tmp_path) -> None:
    corpus, _ = make(text, tmp_path / "old")
    advice = advise(count_words(corpus), corpus.tokenizer(), min_count=1)
    grown = grow_tokenizer(corpus.tokenizer(), [one.word for one in advice.suggestions])
    again, _ = make(text, tmp_path / "new", grown)
    assert len(again.tokens) == advice.after


def test_grown_words_match_in_any_case_and_old_ids_stay() -> None:
    old = bert()
    new = grow_tokenizer(old, ["Zebra", "quagga", "cat"])
    assert new.vocab_size == old.vocab_size + 2
    assert new.encode("ZEBRA quaggas").tokens[1:-1] == ["zebra", "quagga", "##s"]
    for number in range(old.vocab_size):
        assert new.id_to_token(number) == old.id_to_token(number)


@pytest.mark.parametrize("word", ["two words", "a-b", "中文", "", "x" * 101])
def test_what_cannot_be_one_token_is_refused_by_name(word) -> None:
    with pytest.raises(ConfigError, match="cannot be one token"):
        grow_tokenizer(bert(), [word])


def test_other_kinds_of_vocabulary_are_refused(text) -> None:
    tokenizer = learn_vocabulary(["the cat sat"] * 9, kind="byte-bpe", size=300)
    with pytest.raises(ConfigError, match="WordPiece"):
        grow_tokenizer(tokenizer, ["zoo"])
    with pytest.raises(ConfigError, match="WordPiece"):
        count_words_of_files(find_sources([text]), tokenizer)


def tiny(vocab_size: int):
    from dataclasses import replace

    spec = replace(
        find("bert").spec, vocab_size=vocab_size, hidden=16, embedding=16, layers=1, heads=2
    )
    model = build("bert", spec, heads=["masked_lm"], generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        model.heads["masked_lm"].bias.normal_(generator=torch.Generator().manual_seed(2))
    return model


@pytest.mark.parametrize("spare", [0, 1, 10])
def test_new_rows_are_the_mean_of_the_old_pieces(spare) -> None:
    old = bert()
    new = grow_tokenizer(old, ["zoo", "zebra"])
    before = tiny(old.vocab_size + spare)
    after = grow_model(before, old, new)
    assert after.spec.vocab_size == old.vocab_size + max(spare, 2)
    pieces = [old.token_to_id(piece) for piece in ("z", "##o", "##o")]
    number = new.token_to_id("zoo")
    rows = before.encoder.embeddings.tokens.weight
    grown = after.encoder.embeddings.tokens.weight
    assert torch.equal(grown[: old.vocab_size], rows[: old.vocab_size])
    assert torch.allclose(grown[number], rows[pieces].mean(dim=0))
    bias = before.heads["masked_lm"].bias
    assert torch.allclose(after.heads["masked_lm"].bias[number], bias[pieces].mean())


def test_an_extended_folder_loads_here_and_in_transformers(tmp_path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    old = bert()
    save_model(tiny(old.vocab_size), old, tmp_path / "old")
    growth = extend_model(tmp_path / "old", ["zoo", "quagga"], tmp_path / "new")
    assert growth.words == ("zoo", "quagga")
    assert growth.first == old.vocab_size
    ours = load_model(tmp_path / "new")
    theirs = AutoModelForMaskedLM.from_pretrained(tmp_path / "new")
    names = AutoTokenizer.from_pretrained(tmp_path / "new")
    ids = names("the quagga sat at the zoo")["input_ids"]
    assert ids == ours.tokenizer.encode("the quagga sat at the zoo").ids.tolist()
    assert growth.first in ids
    assert theirs.get_output_embeddings().weight.shape[0] == growth.rows
    weight = ours.model.encoder.embeddings.tokens.weight
    assert torch.equal(theirs.get_input_embeddings().weight, weight)
    with pytest.raises(ConfigError, match="already"):
        extend_model(tmp_path / "new", ["zoo"], tmp_path / "again")
