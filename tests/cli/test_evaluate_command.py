"""`bertsmith evaluate`: figures of a model on labeled rows, and of published answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from tiny_finetuning import rows

from bertsmith.labeled.example import Label


def labeled(path: Path, *, wrong: int = 0) -> Path:
    """Sixty rows, the first `wrong` of them with the other label."""
    lines = ["text\tlabel"]
    for number, example in enumerate(rows(60, seed=8)):
        assert isinstance(example.target, Label)
        right = example.target.name
        said = {"yes": "no", "no": "yes"}[right] if number < wrong else right
        lines.append(f"{example.texts[0]}\t{said}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def squad(path: Path) -> Path:
    questions = [
        ("q1", "Who?", [{"text": "Ada", "answer_start": 14}]),
        ("q2", "When?", [{"text": "in 1843", "answer_start": 18}]),
        ("q3", "Where?", [{"text": "in London", "answer_start": 26}]),
        ("q4", "Who else?", [{"text": "Ada", "answer_start": 14}]),
    ]
    paragraph = {
        "context": "It was made by Ada in 1843 in London.",
        "qas": [{"id": i, "question": q, "answers": a} for i, q, a in questions],
    }
    for question in paragraph["qas"]:
        for answer in question["answers"]:  # type: ignore[index]
            answer["answer_start"] = paragraph["context"].index(answer["text"])  # type: ignore
    document = {"version": "1.1", "data": [{"title": "a", "paragraphs": [paragraph]}]}
    path.write_text(json.dumps(document))
    return path


def test_figures_are_those_of_the_rows(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = labeled(tmp_path / "test.tsv", wrong=6)
    assert run("evaluate", classifier, path, "--json", "--out", tmp_path / "judged", "--quiet") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == 60
    assert told["figures"]["accuracy"] == pytest.approx(54 / 60)
    assert {row["label"] for row in told["classes"]} == {"no", "yes"}
    assert json.loads((tmp_path / "judged" / "evaluation.json").read_text()) == told
    rows = [
        json.loads(line)
        for line in (tmp_path / "judged" / "predictions.jsonl").read_text().splitlines()
    ]
    assert [row["line"] for row in rows] == list(range(2, 62))
    assert sum(row["truth"] == row["prediction"] for row in rows) == 54
    assert run("evaluate", classifier, path) == 0
    shown = capsys.readouterr()
    assert "accuracy     0.9000" in shown.out
    assert "label: label" in shown.err  # what was guessed is told


def test_a_label_the_model_does_not_know_is_named_with_its_place(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = labeled(tmp_path / "test.tsv")
    path.write_text(path.read_text() + "a bird\tmaybe\n")
    assert run("evaluate", classifier, path) == 2
    shown = capsys.readouterr().err
    assert "line 62" in shown
    assert "'maybe'" in shown
    assert run("evaluate", classifier, path, "--on-error", "skip") == 0
    shown = capsys.readouterr()
    assert "60 rows" in shown.out
    assert "1 of 61 rows were rejected" in shown.err


def test_rows_without_labels_have_no_figures(
    classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "texts.tsv"
    path.write_text("text\na bird\na stone\n")
    assert run("evaluate", classifier, path) == 2
    assert "--label" in capsys.readouterr().err


def test_published_answers_are_scored_by_the_rules_of_squad(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = squad(tmp_path / "dev.json")
    answers = tmp_path / "answers.json"
    # One right, one half right (two of three words), one missing, one wrong; one of nobody.
    said = {"q1": "Ada", "q2": "in 1843 in", "q4": "Bob", "q9": "x"}
    answers.write_text(json.dumps(said))
    assert run("evaluate", "--predictions", answers, questions) == 0
    shown = capsys.readouterr()
    assert "exact  0.2500" in shown.out
    assert f"f1     {(1 + 0.8) / 4:.4f}" in shown.out
    assert "1 questions have no answer and count 0 (q3)" in shown.err
    assert "1 answers belong to no question of the file (q9)" in shown.err


def test_files_that_hold_no_answers_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = squad(tmp_path / "dev.json")
    answers = tmp_path / "answers.json"
    for text, said in (
        ("[1]", "must be one object"),
        ("{", "is not JSON"),
        ('{"q1": 3}', "field 'q1'"),
    ):
        answers.write_text(text)
        assert run("evaluate", "--predictions", answers, questions) == 2
        assert said in capsys.readouterr().err
    assert run("evaluate", "--predictions", tmp_path / "none.json", questions) == 2
    assert "cannot read" in capsys.readouterr().err
    assert run("evaluate", "--predictions", answers, questions, questions) == 2
    assert "give one file of questions" in capsys.readouterr().err
