"""Phrases and entities of a user's list, found in token ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masking_cases import plain_rows, tokenizer

from bertsmith.corpus.rows import rows_of
from bertsmith.errors import InputFileError
from bertsmith.objectives.masking.grouping import phrases
from bertsmith.objectives.masking.lexicon import Lexicon, Trie
from bertsmith.objectives.masking.masking import choose


def found(language: str, entries: list[str], text: str) -> list[str]:
    made = tokenizer(language)
    encoding = made.encode(text)
    starts, sizes = Lexicon(entries, made).find(rows_of([encoding]))
    return [
        text[encoding.offsets[a][0] : encoding.offsets[a + n - 1][1]]
        for a, n in zip(starts, sizes, strict=True)
    ]


def test_the_longest_phrase_from_the_left_wins() -> None:
    entries = ["new york", "york piece", "new york piece word", "cat"]
    text = "a new york piece word new york piece cat new"
    assert found("english", entries, text) == ["new york piece word", "new york", "cat"]
    assert found("english", entries[:2], text) == ["new york", "new york"]


def test_what_a_dropped_match_covered_can_still_be_found() -> None:
    entries = ["cat mat", "mat new", "new york", "york word", "word play"]
    text = "cat mat new york word play"
    assert found("english", entries, text) == ["cat mat", "new york", "word play"]


def test_a_phrase_is_not_found_inside_of_longer_words() -> None:
    assert found("english", ["new york"], "new yorker new york news york") == ["new york"]
    assert found("english", ["york"], "yorks york") == ["york"]


def test_case_follows_the_tokenizer() -> None:
    assert found("english", ["New York"], "NEW york") == ["NEW york"]


def test_chinese_entities_may_cut_through_the_words_of_the_segmenter() -> None:
    text = "我爱北京大学生活"
    assert found("chinese", ["北京大学生", "爱北"], text) == ["爱北"]
    assert found("chinese", ["北京大学"], text) == ["北京大学"]


def test_entities_are_hidden_whole_and_what_they_cut_off_is_a_unit_of_its_own() -> None:
    made = tokenizer("chinese")
    batch = rows_of([made.encode("我爱北京大学生活很美好")] * 400)
    groups = phrases(Lexicon(["京大"], made))(batch)
    # [CLS] 我 爱 北 京大 学 生活 很 美 好 [SEP]
    one = groups[: batch.lengths[0]]
    starts = np.flatnonzero(np.append(True, one[1:] != one[:-1]))
    assert np.diff(np.append(starts, len(one))).tolist() == [1, 1, 1, 1, 2, 1, 2, 1, 1, 1, 1]
    hidden = choose(groups, batch, 0.3).reshape(400, -1)
    assert (hidden[:, 4] == hidden[:, 5]).all()
    assert hidden[:, 4].mean() == pytest.approx(0.3, abs=0.08)


def test_control_tokens_in_a_list_match_nothing() -> None:
    assert found("english", ["[SEP]", "cat"], "a cat") == ["cat"]


def test_a_list_is_read_with_what_follows_a_tab_passed_over(tmp_path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("new york\t12\tns\n\n cat \nnew york\n", encoding="utf-8")
    assert Lexicon.read(file, tokenizer()).phrases == ("new york", "cat")
    file.write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputFileError, match="holds no phrase"):
        Lexicon.read(file, tokenizer())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_trie_finds_what_a_plain_loop_finds(data) -> None:
    token = st.integers(0, 3)
    entries = data.draw(st.lists(st.lists(token, min_size=1, max_size=4), min_size=1, max_size=8))
    ids = np.array(data.draw(st.lists(token, max_size=20)), dtype=np.int32)
    may_end = np.array(data.draw(st.lists(st.booleans(), min_size=21, max_size=21)))
    trie = Trie(entries, 4)
    starts = np.arange(len(ids))
    sizes = trie.longest_at(ids, starts, np.full(len(ids), len(ids)), may_end)
    for at in starts:
        fitting = [len(e) for e in entries if ids[at : at + len(e)].tolist() == e]
        fitting = [n for n in fitting if may_end[at + n]]
        assert sizes[at] == max(fitting, default=0)
        for size in range(1, len(ids) - at + 1):
            number = trie.exact(ids, np.array([at]), np.array([size]))[0]
            known = ids[at : at + size].tolist()
            assert number == (entries.index(known) if known in entries else -1)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_overlapping_phrases_are_taken_from_the_left_as_a_plain_loop_would(data) -> None:
    names = ["cat", "mat", "new"]
    word = st.sampled_from(names)
    entries = data.draw(
        st.lists(st.lists(word, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6)
    )
    text = data.draw(st.lists(word, min_size=1, max_size=30))
    expected, at = [], 0
    while at < len(text):
        here = " ".join(text[at:]) + " "
        size = max((len(e.split()) for e in entries if here.startswith(e + " ")), default=0)
        expected += [" ".join(text[at : at + size])] if size else []
        at += size or 1
    assert found("english", entries, " ".join(text)) == expected


def test_a_phrase_may_end_after_an_ideograph_whatever_follows() -> None:
    made = tokenizer()
    ids = [made.token_to_id(token) for token in ("北", "京", "cat")]
    batch = plain_rows([[0, 0, 0]])  # a tokenizer that calls all this one word
    batch.ids[:] = ids
    starts, sizes = Lexicon(["北京", "京cat"], made).find(batch)
    assert (starts.tolist(), sizes.tolist()) == ([0], [2])


def test_phrases_do_not_reach_into_the_next_text() -> None:
    made = tokenizer()
    new, york = made.token_to_id("new"), made.token_to_id("york")
    batch = plain_rows([[0], [1], [2, 3]])
    batch.ids[:] = [new, york, new, york]
    starts, sizes = Lexicon(["new york"], made).find(batch)
    assert (starts.tolist(), sizes.tolist()) == ([2], [2])
