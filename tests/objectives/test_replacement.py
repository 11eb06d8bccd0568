"""What takes the place of hidden tokens, for every replacement of the table."""

from __future__ import annotations

import numpy as np
import pytest
from masking_cases import LANGUAGES, declared_kinds, picked, replacement, rows, tokenizer

import bertsmith.objectives.masking.replacement as module
from bertsmith.corpus.rows import rows_of
from bertsmith.errors import ConfigError, InputFileError
from bertsmith.objectives.masking.grouping import geometric, runs, whole_words
from bertsmith.objectives.masking.masking import choose
from bertsmith.objectives.masking.replacement import (
    FATES,
    KEPT,
    MASKED,
    RANDOM,
    REPLACEMENTS,
    SIMILAR,
    Replacement,
    ordinary_ids,
)
from bertsmith.objectives.masking.similar import SimilarWords, read_neighbors, read_synonyms

EACH = pytest.mark.parametrize("kind", REPLACEMENTS)
BOTH = pytest.mark.parametrize("language", LANGUAGES)


def hide(batch, make, group=whole_words, rate=0.15):
    groups = group(batch)
    hidden = choose(groups, batch, rate)
    ids, fates = make(batch, groups, hidden)
    return groups, hidden, ids, fates


@EACH
@BOTH
def test_nothing_changes_but_what_is_hidden(kind, language, tmp_path) -> None:
    batch = rows(language, 200)
    before = batch.ids.copy()
    _, hidden, ids, fates = hide(batch, replacement(kind, language, tmp_path))
    assert (batch.ids == before).all()
    assert (ids[~hidden] == batch.ids[~hidden]).all()
    assert (fates[~hidden] == 0).all()
    assert (fates[hidden] > 0).all()
    assert (ids[fates == KEPT] == batch.ids[fates == KEPT]).all()
    assert (ids[fates == MASKED] == tokenizer().special.mask).all()


@EACH
@BOTH
def test_the_same_seed_writes_the_same_and_neighbors_change_nothing(
    kind, language, tmp_path
) -> None:
    make = replacement(kind, language, tmp_path)
    batch = rows(language, 30)
    _, _, ids, _ = hide(batch, make)
    assert (hide(batch, make)[2] == ids).all()
    some = picked(batch, [4, 28, 1])
    expected = [ids[batch.starts[n] : batch.starts[n] + batch.lengths[n]] for n in (4, 28, 1)]
    assert (hide(some, make)[2] == np.concatenate(expected)).all()


@BOTH
def test_the_mix_is_80_10_10(language, tmp_path) -> None:
    _, hidden, ids, fates = hide(rows(language, 1500), replacement("mix", language, tmp_path))
    shares = np.bincount(fates[hidden], minlength=len(FATES)) / hidden.sum()
    assert shares[MASKED] == pytest.approx(0.8, abs=0.012)
    assert shares[RANDOM] == pytest.approx(0.1, abs=0.009)
    assert shares[KEPT] == pytest.approx(0.1, abs=0.009)
    mask = tokenizer().special.mask
    assert (ids[hidden] == mask).mean() == pytest.approx(0.8, abs=0.012)


def test_any_mix_can_be_asked_for(tmp_path) -> None:
    batch = rows("english", 1500)
    make = replacement("mix", "english", tmp_path, mask=0.5, random=0.3, keep=0.2)
    _, hidden, _, fates = hide(batch, make)
    shares = np.bincount(fates[hidden], minlength=len(FATES)) / hidden.sum()
    assert shares[[MASKED, RANDOM, KEPT]] == pytest.approx([0.5, 0.3, 0.2], abs=0.015)


def test_random_tokens_are_all_ordinary_ones_equally_often(tmp_path) -> None:
    ordinary = ordinary_ids(tokenizer())
    names = {tokenizer().id_to_token(i) for i in ordinary.tolist()}
    assert not names & {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]"}
    assert len(ordinary) == tokenizer().vocab_size - 10
    batch = rows("english", 1500)
    _, hidden, ids, _ = hide(batch, replacement("random", "english", tmp_path), rate=0.5)
    counts = np.bincount(ids[hidden], minlength=tokenizer().vocab_size)
    assert set(np.flatnonzero(counts)) == set(ordinary.tolist())
    expected = hidden.sum() / len(ordinary)
    assert np.abs(counts[ordinary] - expected).max() < 6 * expected**0.5


@pytest.mark.parametrize("by", ["word", "unit"])
def test_one_fate_for_a_whole_word_or_unit_if_asked_for(by, tmp_path) -> None:
    batch = rows("english", 400)
    make = replacement("mix", "english", tmp_path, by=by)
    groups, hidden, _, fates = hide(batch, make, runs(geometric(0.2, 10)))
    key = groups if by == "unit" else batch.words
    units = [set(fates[(key == unit) & hidden].tolist()) for unit in np.unique(key[hidden])[:500]]
    assert all(len(unit) == 1 for unit in units)
    inside = [len(set(fates[(groups == u) & hidden].tolist())) for u in np.unique(groups[hidden])]
    assert (max(inside) > 1) == (by == "word")  # words of one span may differ
    by_token = replacement("mix", "english", tmp_path)(batch, groups, hidden)[1]
    assert any(len(set(by_token[(key == u) & hidden].tolist())) > 1 for u in np.unique(key[hidden]))
    shares = np.bincount(fates[hidden], minlength=len(FATES)) / hidden.sum()
    assert shares[MASKED] == pytest.approx(0.8, abs=0.04)


@BOTH
def test_similar_words_have_as_many_pieces_and_come_from_the_list(language, tmp_path) -> None:
    batch = rows(language, 400)
    make = replacement("similar", language, tmp_path)
    _, hidden, ids, fates = hide(batch, make)
    made = tokenizer(language)
    pairs = set()
    for word in np.unique(batch.words[fates == SIMILAR]):
        own = batch.words == word
        assert (fates[own] == SIMILAR).all()
        old, new = ("".join(made.id_to_token(i) for i in x[own]) for x in (batch.ids, ids))
        pairs.add((old.replace("##", ""), new.replace("##", "")))
    if language == "english":
        assert ("cat", "mat") in pairs
        assert ("cats", "words") in pairs
        known = [{"cat", "mat", "word"}, {"north", "south"}, {"play", "like", "sing"}]
        known.append({"cats", "mats", "words"})
    else:
        known = [{"北京", "上海", "中国"}, {"大学", "生活"}, {"我", "爱"}]
    assert all(any({old, new} <= group and old != new for group in known) for old, new in pairs)
    assert not (fates == MASKED).any()
    kept = (fates[hidden] == KEPT).mean()
    assert kept == pytest.approx(0.1, abs=0.02)
    # What has no similar word falls back to random tokens.
    lonely = made.token_to_id("new" if language == "english" else "很")
    assert not (fates[batch.ids == lonely] == SIMILAR).any()


def test_similar_words_from_vectors_are_the_nearest_ones(tmp_path) -> None:
    file = tmp_path / "words.vec"
    lines = ["5 2", "cat 1 0.1", "mat 1 0.2", "north 0 1", "south 0.1 1", "play -1 -1"]
    file.write_text("\n".join(lines), encoding="utf-8")
    near = read_neighbors(file, words=100, neighbors=1)
    assert near["cat"] == ["mat"]
    assert near["north"] == ["south"]
    assert set(read_neighbors(file, words=2, neighbors=5)) == {"cat", "mat"}
    make = REPLACEMENTS["similar"].model_validate({"vectors": str(file), "neighbors": 1})
    words = make.make(tokenizer()).words
    assert words.count == 5


def test_files_that_are_not_what_they_should_be_are_refused_by_line(tmp_path) -> None:
    file = tmp_path / "words.vec"
    for text, message in (
        ("a 1 2\nb 1 x", "line 2"),
        ("a 1 2\nb 1", "line 2: 1 numbers, but the first vector has 2"),
        ("a 1 2", "fewer than two"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputFileError, match=message):
            read_neighbors(file, words=10, neighbors=1)
    spoiled = tmp_path / "words.json"
    for text, message in (("{", "JSON"), ("[]", "one object"), ('{"a": "b"}', "not a list")):
        spoiled.write_text(text, encoding="utf-8")
        with pytest.raises(InputFileError, match=message):
            read_synonyms(spoiled)
    spoiled.write_text('{"cat": ["mat"]}', encoding="utf-8")
    assert read_synonyms(spoiled) == {"cat": ["mat"]}
    file.write_text("lonely\n\nAa01A01@ 人\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="two words of one meaning"):
        read_synonyms(file)


def test_roberta_words_keep_their_leading_space(tmp_path) -> None:
    from bertsmith.text.tokenizer import Tokenizer

    merges = ["c a", "ca t", "d o", "do g", "Ġ cat", "Ġ dog"]
    letters = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"catdogĠ"]
    vocab = {t: n for n, t in enumerate([*letters, *(m.replace(" ", "") for m in merges)])}
    import json

    files = {"vocab.json": json.dumps(vocab).encode()}
    files["merges.txt"] = ("#version: 0.2\n" + "\n".join(merges) + "\n").encode()
    made = Tokenizer.from_files(files)
    batch = rows_of([made.encode("cat dog")])
    words = SimilarWords({"cat": ["dog"], "dog": ["cat"]}, made)
    starts = np.array([1, 2])
    entries = words.find(batch.ids, starts, np.array([1, 1]))
    assert (entries >= 0).all()
    picked_ids = words.tokens[words.pick(entries, np.zeros(2))]
    assert [made.id_to_token(i) for i in picked_ids.tolist()] == ["dog", "Ġcat"]


def test_shares_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ConfigError, match="add up to 1"):
        Replacement(mask_id=4, ordinary=np.arange(3), mask=0.5)
    with pytest.raises(ConfigError, match="no mask token"):
        Replacement(mask_id=None, ordinary=np.arange(3))


def test_every_replacement_of_the_module_is_in_the_table() -> None:
    assert declared_kinds(module) == set(REPLACEMENTS)
