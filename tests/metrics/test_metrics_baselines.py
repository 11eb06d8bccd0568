"""Baselines: they learn what words can tell, in the settings their documentation states."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier

from bertsmith.metrics.baselines.tfidf import MANY_ROWS, tfidf, tokens
from bertsmith.tasks.kinds import TASKS

MAJORITY = {name: kind.majority for name, kind in TASKS.items()}
WORDS = {name: kind.words for name, kind in TASKS.items()}

GOOD, BAD, PLAIN = ("fine great lovely", "awful poor dull", "the film was a of and plot scene")


def reviews(rows: int, seed: int, length: int = 12):
    """Texts of plain words with one or two telling ones, and whether those are good."""
    random = np.random.default_rng(seed)
    targets = random.integers(0, 2, rows)
    plain = random.choice(PLAIN.split(), (rows, length))
    telling = [random.choice((BAD, GOOD)[target].split()) for target in targets]
    return [
        (" ".join([*words, word]),) for words, word in zip(plain, telling, strict=True)
    ], targets


def features(texts, new):
    """TF-IDF as a reader of the documentation would write it."""
    vectorizer = TfidfVectorizer(token_pattern=r"\w+", ngram_range=(1, 2), sublinear_tf=True)
    known = vectorizer.fit_transform([text for (text,) in texts])
    return known, vectorizer.transform([text for (text,) in new])


def test_labels_are_those_of_logistic_regression_on_tfidf() -> None:
    texts, targets = reviews(80, 1)
    new, _ = reviews(30, 2)
    known, asked = features(texts, new)
    oracle = LogisticRegression(C=3.0, solver="liblinear", random_state=0).fit(known, targets)
    found = WORDS["classify"](texts, targets, new, ("bad", "good"))
    np.testing.assert_allclose(found, oracle.predict_proba(asked), atol=1e-12)
    np.testing.assert_array_equal(found, WORDS["classify"](texts, targets, new, ("bad", "good")))


def test_many_classes_are_learned_one_against_the_rest() -> None:
    texts, targets = reviews(90, 1)
    targets = targets + (np.arange(90) % 3 == 0)  # 0, 1, 2
    known, asked = features(texts, texts[:20])
    single = LogisticRegression(C=3.0, solver="liblinear", random_state=0)
    expected = OneVsRestClassifier(single).fit(known, targets).predict_proba(asked)
    found = WORDS["classify"](texts, targets, texts[:20], ("a", "b", "c"))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_numbers_are_those_of_ridge_regression_on_tfidf() -> None:
    texts, targets = reviews(60, 3)
    values = targets * 2.0 + np.random.default_rng(0).normal(0, 0.1, 60)
    known, asked = features(texts, texts[:20])
    expected = Ridge(alpha=1.0, tol=1e-10).fit(known, values).predict(asked)
    found = WORDS["regress"](texts, values, texts[:20], ())
    np.testing.assert_allclose(found, expected.clip(values.min(), values.max()), atol=1e-3)


def test_two_fields_also_say_what_they_share() -> None:
    known, asked = tfidf([("a b", "b c"), ("a", "a")], [("b", "b"), ("x", "")])
    size = (known.shape[1] - 1) // 4  # first, second, shared, different, and the cosine
    assert known.shape[1] == 4 * size + 1
    assert known[1, -1] == pytest.approx(1.0)
    assert 0 < known[0, -1] < 1
    assert asked[0, 3 * size : 4 * size].nnz == 0
    assert asked[1].nnz == 0


def test_rare_words_of_many_rows_are_left_out() -> None:
    texts = [("same",)] * MANY_ROWS
    assert tfidf([*texts[1:], ("once",)], texts[:1])[0].shape[1] == 1
    assert tfidf([*texts[2:], ("once",)], texts[:1])[0].shape[1] == 2


def test_words_tell_good_from_bad_where_the_commonest_class_cannot() -> None:
    texts, targets = reviews(300, 4)
    new, wanted = reviews(100, 5)
    labels = ("bad", "good")
    scored = [
        TASKS["classify"].metric.score(
            wanted, baseline["classify"](texts, targets, new, labels), labels
        )
        for baseline in (MAJORITY, WORDS)
    ]
    assert scored[0]["accuracy"] <= 0.6
    assert scored[1]["accuracy"] >= 0.95


def test_chinese_is_read_by_characters_and_their_pairs() -> None:
    assert tokens("我爱BERT模型!") == ["我", "爱", "bert", "模", "型", "!"]
    # Only the pair tells: 不 and 好 stand in both classes.
    good, bad = "好不热闹", "热闹不好"
    texts, targets = [(good,), (bad,)] * 10, [1, 0] * 10
    found = WORDS["classify"](texts, targets, [("真是好不开心",), ("开心不好",)], ("no", "yes"))
    assert found.argmax(axis=1).tolist() == [1, 0]


def test_the_words_two_texts_share_tell_their_likeness() -> None:
    random = np.random.default_rng(6)
    words = [f"w{n}" for n in range(200)]

    def pairs(rows):
        texts, values = [], []
        for _ in range(rows):
            first = list(random.choice(words, 10, replace=False))
            kept = int(random.integers(0, 11))
            second = first[:kept] + list(random.choice(words, 10 - kept))
            texts.append((" ".join(first), " ".join(second)))
            values.append(kept / 2)
        return texts, np.array(values)

    texts, targets = pairs(400)
    new, wanted = pairs(100)
    found = WORDS["regress"](texts, targets, new, ())
    assert TASKS["regress"].metric.score(wanted, found)["spearman"] > 0.9
    assert targets.min() <= found.min() <= found.max() <= targets.max()
    assert np.isnan(
        TASKS["regress"].metric.score(wanted, MAJORITY["regress"](texts, targets, new, ()))[
            "spearman"
        ]
    )


def test_many_labels_each_by_its_own_words() -> None:
    random = np.random.default_rng(7)
    names = ("sport", "music", "food", "never")
    marks = random.random((200, 4)) < 0.3
    marks[:, 3] = False
    texts = [
        (" ".join([*random.choice(PLAIN.split(), 6), *np.array(names)[row]]),) for row in marks
    ]
    found = WORDS["multilabel"](texts[:150], marks[:150], texts[150:], names)
    scored = TASKS["multilabel"].metric.score(marks[150:], found, names)
    assert scored["f1_micro"] > 0.9
    common = MAJORITY["multilabel"](texts[:150], marks[:150], texts[150:], names)
    assert common.chosen.any(axis=1).all()
    assert TASKS["multilabel"].metric.score(marks[150:], common, names)["f1_micro"] < 0.6


def test_a_rare_label_that_is_never_likely_is_still_found_by_its_threshold() -> None:
    # One row in ten has the label, six of ten of those have the word, and one of ten of the others:
    # even with the word the label has a chance of 0.4 only.
    marks = np.zeros((2000, 1), dtype=bool)
    marks[np.random.default_rng(1).permutation(2000)[:200]] = True
    random = np.random.default_rng(2)
    chance = np.where(marks[:, 0], 0.6, 0.1)
    texts = [("telling" if here else "plain",) for here in random.random(2000) < chance]
    found = WORDS["multilabel"](texts[:1500], marks[:1500], texts[1500:], ("rare",))
    assert found.probabilities.max() < 0.5
    assert TASKS["multilabel"].metric.score(marks[1500:], found, ("rare",))["f1_micro"] > 0.35


def test_a_choice_by_the_words_of_right_endings() -> None:
    random = np.random.default_rng(8)

    def rows(count):
        targets = random.integers(0, 3, count)
        texts = []
        for target in targets:
            endings = [" ".join(random.choice(BAD.split(), 3)) for _ in range(3)]
            endings[target] = " ".join(random.choice(GOOD.split(), 3))
            texts.append(("the film was", *endings))
        return texts, targets

    texts, targets = rows(60)
    new, wanted = rows(30)
    assert (WORDS["choose"](texts, targets, new, ()) == wanted).all()
    assert len(set(MAJORITY["choose"](texts, targets, new, ()))) == 1
    assert MAJORITY["choose"](texts, [2] * 60, [("c", "x", "y")], ()).tolist() == [0]


def test_a_word_gets_its_commonest_tag_and_a_new_one_the_commonest_of_all() -> None:
    texts = [["in", "Paris", "of"], ["Paris", "met", "in"], ["Paris", "is"]]
    tags = [["O", "B-LOC", "O"], ["B-PER", "O", "O"], ["B-LOC", "O"]]
    assert WORDS["tag"](texts, tags, [["Paris", "Rome"]], ()) == [["B-LOC", "O"]]
    assert MAJORITY["tag"](texts, tags, [["Paris", "Rome"]], ()) == [["O", "O"]]


def test_an_answer_is_a_part_of_its_context_near_the_words_of_the_question() -> None:
    context = (
        "The tower was finished in 1889 by Gustave Eiffel. Many people visit the city of Paris. "
        "A bridge nearby was opened in 1900 for the fair."
    )
    # Common words become known as such by the contexts of others.
    others = "It was in the end a case of law for many. By the way: of a man in the hall, by day."
    train = [("Who built it?", f"{others} Jane Doe built number {n}.") for n in range(4)]
    golds = [["Jane Doe"]] * 4
    asked = ["When was the bridge nearby opened?", "Who finished the tower?", "", "zzz"]
    found = WORDS["answer"](train, golds, [(question, context) for question in asked], ())
    assert "1900" in found[0]
    assert found[1] in context.partition(".")[0]
    assert found[1] not in others
    assert all(answer and answer in context for answer in found)
    assert WORDS["answer"]([], [], [("who", "")], ()) == [""]
    assert MAJORITY["answer"](train, [[], [], ["x"], []], train[:1], ()) == [""]


def test_texts_without_words_are_no_trouble() -> None:
    nothing = [("",), (" ",), ("",), ("",), ("",), ("",)]
    found = WORDS["classify"](nothing, [0, 1, 1, 1, 0, 1], [("",), ("new",)], ("a", "b"))
    assert found.argmax(axis=1).tolist() == [1, 1]
    assert WORDS["regress"](nothing, [1.0, 3.0] * 3, [("x",)], ()) == pytest.approx([2.0])
    many = [("a", "b", "c", "d", "e e")] * 4
    assert WORDS["classify"](many, [0, 1, 1, 1], many[:1], ("a", "b")).shape == (1, 2)


def test_twenty_thousand_rows_take_seconds() -> None:
    texts, targets = reviews(20_000, 9, length=20)
    start = time.process_time()
    WORDS["classify"](texts, targets, texts[:500], ("bad", "good"))
    assert time.process_time() - start < 5
