"""The answer for one text, for people: the answer first, then what else was likely."""

from __future__ import annotations

from bertsmith.cli.views.predict import prediction_lines
from bertsmith.tasks.prediction import PredictedAnswer, PredictedSpan, Prediction


def test_a_label_comes_with_its_rivals() -> None:
    odds = {"a": 0.1, "b": 0.6, "c": 0.2, "d": 0.1}
    said = Prediction(value="b", probabilities=odds, confidence=0.6)
    assert prediction_lines(said, most=2) == ["b", "  0.6000  b", "  0.2000  c", "  and 2 more"]


def test_other_answers_are_spelled_as_their_task_has_them() -> None:
    spans = (PredictedSpan(0, 3, "PER", "Ada", 0.25), PredictedSpan(9, 15, "LOC", "London"))
    tags = ("B-PER", "O", "B-LOC")
    assert prediction_lines(Prediction(value=spans, tags=tags), most=5) == [
        "PER\tAda\t0-3 (0.2500)",
        "LOC\tLondon\t9-15",
    ]
    assert prediction_lines(Prediction(value=(), tags=("O",)), most=5) == ["no spans"]
    assert prediction_lines(Prediction(value=()), most=5) == ["no label"]
    assert prediction_lines(Prediction(value=("x", "y")), most=5) == ["x, y"]
    assert prediction_lines(Prediction(value=2.5), most=5) == ["2.5000"]
    none, some = PredictedAnswer("", 0, 0, 1.0), PredictedAnswer("Ada", 0, 3, 0.5)
    said = Prediction(value=none, confidence=0.7, others=(some,))
    assert prediction_lines(said, most=5) == ["no answer (0.7000)", "  or: Ada"]


def test_a_choice_is_shown_by_its_text_and_a_cut_is_told() -> None:
    said = Prediction(value=1, probabilities={"0": 0.25, "1": 0.75}, cut=1200)
    assert prediction_lines(said, most=5, choices=("left", "right")) == [
        "right",
        "  0.2500  left",
        "  0.7500  right",
        "note: the text is too long; 1,200 tokens were truncated",
    ]
