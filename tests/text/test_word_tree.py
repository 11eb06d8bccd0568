"""All words of a dictionary in a text, and the best division of blocks into them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.text.jieba.best_division import divide
from bertsmith.text.jieba.word_tree import WordTree

WORDS = st.dictionaries(
    st.text(alphabet="abc", min_size=1, max_size=5), st.integers(-9, -1), max_size=12
)
UNKNOWN = -10.0


def tree_of(words: dict[str, float]) -> WordTree:
    return WordTree([*words], np.array([*words.values()], dtype=np.float64))


def letters_of(text: str) -> np.ndarray:
    """Spaces part blocks."""
    return np.array([0 if letter == " " else ord(letter) for letter in text], dtype=np.uint16)


def found_in(tree: WordTree, text: str) -> set[tuple[int, int, float]]:
    return {
        (start, start + length, value)
        for length, (places, values) in enumerate(tree.find(letters_of(text)), start=1)
        for start, value in zip(places.tolist(), values.tolist(), strict=True)
    }


@settings(max_examples=100, deadline=None)
@given(words=WORDS, text=st.text(alphabet="abcd ", max_size=15))
def test_every_word_is_found_wherever_it_stands(words, text) -> None:
    wanted = {
        (at, at + len(word), value)
        for word, value in words.items()
        for at in range(len(text))
        if text.startswith(word, at)
    }
    assert found_in(tree_of(words), text) == wanted


def test_of_equal_words_the_last_counts_and_nan_is_only_a_beginning() -> None:
    tree = WordTree(["ab", "a", "ab"], np.array([1.0, np.nan, 2.0]))
    assert found_in(tree, "ab") == {(0, 2, 2.0)}


def test_a_hundred_thousand_words_keep_their_values() -> None:
    words = ["".join(letters) for letters in itertools.product("abcdefghijklmnopqr", repeat=4)]
    tree = WordTree(words, np.arange(len(words), dtype=np.float64))
    chosen = words[:: len(words) // 500]
    found = found_in(tree, " ".join(chosen))
    wanted = [float(words.index(word)) for word in chosen]
    assert [value for _, _, value in sorted(found)] == wanted


def best_by_trying(block: str, words: dict[str, float]) -> list[int]:
    """Where words start, by the rule itself: from the end, the longest of equal ones."""
    best: list[tuple[float, int]] = [(0.0, 0)] * (len(block) + 1)
    for at in reversed(range(len(block))):
        ends = [end for end in range(at + 1, len(block) + 1) if block[at:end] in words]
        scores = [(words.get(block[at:end], UNKNOWN), end) for end in ends or [at + 1]]
        best[at] = max((score + best[end][0], end) for score, end in scores)
    starts, at = [], 0
    while at < len(block):
        starts.append(at)
        at = best[at][1]
    return starts


@settings(max_examples=100, deadline=None)
@given(words=WORDS, blocks=st.lists(st.text(alphabet="abcd", max_size=12), max_size=5))
def test_blocks_are_divided_as_if_each_stood_alone(words, blocks) -> None:
    # Small whole scores make many sums equal.
    text = " ".join(blocks)
    division = divide(tree_of(words), letters_of(text), UNKNOWN)
    wanted, at = [], 0
    for block in blocks:
        wanted += [at + start for start in best_by_trying(block, words)]
        at += len(block) + 1
    assert np.flatnonzero(division.opens).tolist() == wanted
    for start in np.flatnonzero(division.lone).tolist():
        after = start + 1
        assert start in wanted
        assert after in wanted or after == len(text) or text[after] == " "


@pytest.mark.parametrize("text", ["", " ", "   "])
def test_a_text_without_blocks_has_no_words(text) -> None:
    division = divide(tree_of({"a": -1.0}), letters_of(text), UNKNOWN)
    assert not division.opens.any()
    assert len(division.starts) == 0
