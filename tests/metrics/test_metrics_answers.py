"""Answers by the rules of SQuAD and CMRC, with values worked out by hand."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertsmith.errors import ConfigError
from bertsmith.metrics.answers import (
    RULES,
    answer_scores,
    normalized,
    rules_for,
    squad1,
    squad2,
)
from bertsmith.metrics.chinese_answers import cmrc, longest_common_run, segments

# (prediction, gold answers, exact, F1)
SQUAD = [
    ("The Norman conquest!", ["norman  conquest"], 1.0, 1.0),
    ("in October 1973", ["October 1973", "October", "1973"], 0.0, 0.8),  # 2 of 3, 2 of 2
    ("$12", ["nearly $12", "12"], 1.0, 1.0),
    ("a dog and a dog", ["dog dog cat"], 0.0, 2 / 3),  # "dog" counts twice: 2 of 3, 2 of 3
    ("blue", ["red"], 0.0, 0.0),
    ("", ["red"], 0.0, 0.0),
    (None, ["red"], 0.0, 0.0),
]


@pytest.mark.parametrize("rules", ["squad1", "squad2"])
def test_questions_with_answers_by_hand(rules) -> None:
    predictions, targets, exact, f1 = zip(*SQUAD, strict=True)
    scores = answer_scores(targets, predictions, rules)
    assert scores[:, 0].tolist() == list(exact)
    assert scores[:, 1].tolist() == pytest.approx(list(f1))


@pytest.mark.parametrize(
    ("prediction", "golds", "expected"),
    [
        ("", [], (1.0, 1.0)),
        ("the", [], (1.0, 1.0)),  # nothing is left of it
        ("red", [], (0.0, 0.0)),
        ("", ["the"], (1.0, 1.0)),  # a gold answer of which nothing is left is none
        ("", ["the", "red"], (0.0, 0.0)),
    ],
)
def test_no_answer_by_the_rules_of_squad_2(prediction, golds, expected) -> None:
    assert squad2(prediction, golds) == expected


def test_squad_1_keeps_a_gold_answer_of_articles_only() -> None:
    assert squad1("The", ["a"]) == (1.0, 0.0)


def test_normalization_takes_punctuation_first_then_articles() -> None:
    assert normalized("The  A-team's  an\u00a0ANT, a.") == "ateams ant"
    assert normalized("l'a") == "la"
    assert normalized("“the” end") == "“ ” end"  # only ASCII marks are taken out


@pytest.mark.parametrize(
    ("prediction", "golds", "exact", "f1"),
    [
        ("北京大学", ["北京大学"], 1.0, 1.0),
        ("《北京》、大学。", ["北京大学"], 1.0, 1.0),
        ("在北京大学", ["北京大学"], 0.0, 8 / 9),  # 4 of 5, 4 of 4
        ("甲丙乙丁", ["甲乙丙丁"], 0.0, 0.25),  # the longest common run is one, not three
        # Against the first 3 of 5 and 3 of 4, against the second 2 of 5 and 2 of 2.
        ("光荣和Omega Force", ["光荣和ω-force", "光荣"], 0.0, 2 / 3),
        ("光荣和ω-FORCE", ["光荣和ω-force"], 1.0, 1.0),
        ("", ["北京"], 0.0, 0.0),
        ("。", ["、"], 1.0, 0.0),  # as the program has it
        ("3,000 km", ["3,000"], 0.0, 2 / 3),
        ("", [], 1.0, 1.0),
        ("北京", [], 0.0, 0.0),
    ],
)
def test_chinese_answers_by_hand(prediction, golds, exact, f1) -> None:
    assert cmrc(prediction, golds) == (exact, pytest.approx(f1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("战国无双3是", "战 国 无 双 3 是"),
        ("R-S-R和10-14", "rsr 和 1014"),
        ("（Paul Sereno）等", "paul sereno 等"),
        ("don't, it's.", "do n't , it 's ."),
        ('he said "no (way)"', "he said `` no ( way ) ''"),
        ("3,000, U.S. 4.5%...", "3,000 , u.s. 4.5 % ..."),
        ("cannot @home; a's", "can not @ home ; a 's"),
        ('说"好"', "说 `` 好 ``"),
        ("  ", ""),
    ],
)
def test_segments_are_han_characters_and_words_as_nltk_splits_them(text, expected) -> None:
    assert segments(text) == expected.split()


def test_the_longest_run_equals_a_table_of_all_prefixes() -> None:
    rng = random.Random(3)
    for _ in range(200):
        first, second = ("".join(rng.choices("abc", k=rng.randint(0, 12))) for _ in range(2))
        best = max(
            (
                end - start
                for start in range(len(first))
                for end in range(start, len(first) + 1)
                if first[start:end] in second
            ),
            default=0,
        )
        assert longest_common_run(first, second) == best


WORDS = st.text(alphabet="ab the,.'\"-北京大学《》 ", max_size=12)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(RULES)), WORDS, st.lists(WORDS, max_size=3), st.randoms())
def test_scores_are_bounded_and_take_the_best_gold(name, prediction, golds, random_) -> None:
    rule = RULES[name]
    exact, f1 = rule(prediction, golds)
    assert exact in (0.0, 1.0)
    assert 0.0 <= f1 <= 1.0
    shuffled = golds[:]
    random_.shuffle(shuffled)
    assert rule(prediction, shuffled) == (exact, f1)
    # In SQuAD 2.0 a gold answer of which nothing is left does not count beside others.
    if name != "squad2" or normalized(prediction):
        assert rule(prediction, [*golds, prediction])[0] == 1.0
    if golds and name != "squad2":
        each = [rule(prediction, [gold]) for gold in golds]
        assert (exact, f1) == (max(e for e, _ in each), max(f for _, f in each))


def test_the_rules_follow_from_the_gold_answers() -> None:
    assert rules_for([["red"], ["blue"]]) == "squad1"
    assert rules_for([["red"], []]) == "squad2"
    assert rules_for([["北京"], ["上海", "x"], []]) == "cmrc"
    assert rules_for([[], []]) == "squad2"


def test_unknown_rules_and_uneven_sides_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cmrc'"):
        answer_scores([["x"]], ["x"], "cmrcs")
    with pytest.raises(ConfigError, match="1 targets, but 2"):
        answer_scores([["x"]], ["x", "y"], "squad1")
