"""Single parts of a proof: shortened texts, ways to be wrong, question words, baselines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof_cases import CASES, answer_case, classify_case

from bertsmith.errors import ConfigError
from bertsmith.evaluation.proof import baselines, prove
from bertsmith.metrics.entities import _compared
from bertsmith.tasks.answer.evaluation import question_word
from bertsmith.tasks.excerpts import around, shortened


@given(st.text(max_size=300), st.integers(20, 200))
def test_a_text_is_shortened_to_about_its_room_and_keeps_both_ends(text, longest) -> None:
    short = shortened(text, longest)
    if len(text) <= longest:
        assert short == text
    else:
        assert len(short) <= longest + 30
        assert short[:10] == text[:10]
        assert short[-5:] == text[-5:]


@given(st.integers(0, 990), st.integers(1, 30))
def test_the_place_in_question_stays_in_the_part_that_is_shown(start, size) -> None:
    text = "".join(chr(0x4E00 + n) for n in range(1_000))
    piece = text[start : start + size]
    short = around(text, [(start, start + len(piece))], 100)
    assert piece in short
    assert len(short) < 200


@pytest.mark.parametrize(
    ("wanted", "given_spans", "kind"),
    [
        ([("A", 0, 2)], [("A", 0, 2)], "right"),
        ([("A", 0, 2)], [("B", 0, 2)], "other type"),
        ([("A", 0, 2)], [("A", 1, 3)], "other borders"),
        ([("A", 0, 2)], [("B", 1, 3)], "other type and borders"),
        ([("A", 0, 2)], [], "missed"),
        ([], [("A", 0, 2)], "invented"),
    ],
)
def test_each_way_to_be_wrong(wanted, given_spans, kind) -> None:
    found = +_compared(wanted, given_spans)
    assert found == {kind: 1}


def test_one_long_span_stands_for_one_of_two_short_ones_only() -> None:
    found = +_compared([("A", 0, 2), ("A", 3, 5)], [("A", 0, 5)])
    assert found == {"other borders": 1, "missed": 1}


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("How many people live there?", "how many"),
        ("In which year was it?", "which"),
        ("Name the river.", "other"),
        ("这本书是谁写的？", "谁"),
        ("他为什么离开？", "为什么"),
        ("什么时候开始？", "什么时候"),
        ("WHO is it?", "who"),
        ("somewhat", "other"),
    ],
)
def test_the_question_word_is_found(question, word) -> None:
    assert question_word(question) == word


def test_questions_and_answerability_count_every_row() -> None:
    task, examples, said = answer_case()
    told = prove(task, examples, said).to_json()
    assert sum(row["rows"] for row in told["questions"]) == len(examples)
    assert sum(told["answerability"].values()) == len(examples)
    none = sum(not one.target.placed for one in examples)
    answerability = told["answerability"]
    assert answerability["answered_without_answer"] + answerability["silent_without_answer"] == none
    for one in told["errors"]["shown"]:
        assert one["prediction"] == "(no answer)" or one["prediction"] in one["texts"][1]


@pytest.mark.parametrize("name", CASES)
def test_every_task_has_two_baselines(name) -> None:
    task, examples, said = CASES[name]()
    half = len(examples) // 2
    found = baselines(name, examples[:half], examples[half:])
    assert set(found) == {"majority", "words"}
    figures = set(prove(task, examples, said).figures)
    for values in found.values():
        assert set(values) <= figures
    if name == "classify":  # the label stands in the text
        assert found["words"]["accuracy"] > found["majority"]["accuracy"] + 0.2


def test_baselines_know_labels_that_only_dev_has_and_name_what_is_missing() -> None:
    _, train, _ = classify_case(50, ("a", "b"))
    _, dev, _ = classify_case(50, ("a", "b", "c"))
    assert baselines("classify", train, dev)["majority"]["accuracy"] < 0.7
    with pytest.raises(ConfigError, match="training rows"):
        baselines("classify", [], dev)
    with pytest.raises(ConfigError, match="did you mean 'classify'"):
        baselines("clasify", train, dev)
