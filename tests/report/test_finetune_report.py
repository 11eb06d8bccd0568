"""The report of a fine-tuned model: what it comes down to first, and every section it can have."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from finetune_record import finetune_page, finetune_record
from html_tree import Tree
from proof_cases import CASES, classify_case

from bertsmith.cli.views.results import UNCHANGED, training_lines
from bertsmith.report.finetune.figures import fraction, percent, plural, value_of
from bertsmith.report.finetune.overfitting import overfitting
from bertsmith.report.finetune.overview import BEATEN, headline, is_beaten
from bertsmith.report.finetune.page import finetune_sections
from bertsmith.report.finetune.result import finetune_result
from bertsmith.report.training_page import write_training_page

EVERYWHERE = ("Metrics", "Seeds", "Folds", "Worst errors", "Data", "Training", "Settings")
SPECIAL = {
    "classify": ("Metrics per class", "Confusion matrix", "Calibration"),
    "multilabel": ("Metrics per class", "Calibration"),
    "regress": ("True and predicted values",),
    "tag": (
        "Metrics per class",
        "Confusion matrix",
        "Entity errors",
        "Calibration",
    ),
    "answer": ("By question word", "Answerability", "Calibration"),
    "choose": ("Metrics per class", "Confusion matrix", "Calibration"),
}


@pytest.fixture(scope="module")
def record() -> dict:
    return finetune_record()


def headings(page: str) -> list[str]:
    pieces = page.replace("<h3>", "<h2>").replace("</h3>", "</h2>").split("<h2>")[1:]
    return [piece.partition("</h2>")[0] for piece in pieces]


def test_a_training_that_helped_nothing_is_told_as_such() -> None:
    record = finetune_record()
    record["training"] |= {"best_step": 0, "best_weights": "live"}
    assert terminal_lines(record)[0].endswith("best: the weights of the start")
    assert UNCHANGED in terminal_lines(record)
    assert UNCHANGED not in terminal_lines(finetune_record())


def terminal_lines(record: dict[str, Any]) -> list[str]:
    return training_lines(Path("m"), record, finetune_result(record), Path("report.html"))


@pytest.mark.parametrize("name", CASES)
def test_every_task_has_its_sections(name) -> None:
    found = headings(finetune_page(finetune_record(name), title="mine"))
    for title in (*EVERYWHERE, *SPECIAL[name]):
        assert title in found, title
    others = {title for titles in SPECIAL.values() for title in titles} - set(SPECIAL[name])
    assert not others & set(found)


def test_the_first_sentence_says_how_good_and_what_less_would_get() -> None:
    told = {
        "task": "classify",
        "dev": {
            "rows": 872,
            "main": "accuracy",
            "figures": {"accuracy": 0.9213, "mcc": 0.84},
            "classes": [{"label": "neg", "support": 428}, {"label": "pos", "support": 444}],
        },
        "baselines": {"dev": {"majority": {"accuracy": 444 / 872}, "words": {"accuracy": 0.803}}},
    }
    assert headline(told) == (
        "Accuracy 0.9213 on 872 dev rows; majority class (“pos”) 0.5092, "
        "TF-IDF linear model 0.8030."
    )
    del told["baselines"]
    assert headline(told) == "Accuracy 0.9213 on 872 dev rows."
    # Whatever the majority was, a label that does not have that share is not named.
    told["baselines"] = {"dev": {"majority": {"accuracy": 0.4}}}
    assert "majority class 0.4000" in headline(told)
    assert headline({}) == ""


def test_test_rows_count_more_than_dev_rows(record) -> None:
    assert "test rows" in headline(record)
    assert "Evaluation on dev" in finetune_page(record, title="x")
    alone = {**record, "test": None}
    assert "dev rows" in headline(alone)
    page = finetune_page(alone, title="x")
    assert "The same of" not in page
    assert "best weights were chosen on these rows" in page


def test_a_mean_of_weights_is_called_one(record) -> None:
    assert "best weights at step 90" in finetune_page(record, title="x")
    averaged = {**record, "training": {**record["training"], "best_weights": "average"}}
    page = finetune_page(averaged, title="x")
    assert "best weights: the average of the last steps" in page
    assert "best weights at step" not in page


def test_whatever_is_missing_is_left_out(record) -> None:
    for key in record:
        less = {k: v for k, v in record.items() if k != key}
        empty = {**record, key: None}
        assert finetune_page(less, title="x") == finetune_page(empty, title="x")
    bare = finetune_page({}, title="x")
    assert headings(bare) == []
    assert "Seeds" not in headings(finetune_page({**record, "seeds": None}, title="x"))
    proof = copy.deepcopy(record)
    for key in ("confusion", "calibration", "errors", "truncation", "classes"):
        del proof["test"][key]
    del proof["dev"]
    found = headings(finetune_page(proof, title="x"))
    for title in (*SPECIAL["classify"], "Worst errors", "Truncation"):
        assert title not in found


def test_the_page_shows_the_figures_of_the_record(record) -> None:
    words = " ".join(Tree(finetune_page(record, title="x")).texts)
    for split in ("dev", "test"):
        assert fraction(record[split]["figures"]["accuracy"]) in words
        assert value_of("mcc", record[split]["figures"]["mcc"]) in words
    for row in record["test"]["confusion"]["counts"]:
        assert all(str(count) in words for count in row)
    worst = record["test"]["errors"]["shown"][0]
    assert worst["texts"][0] in words
    assert worst["place"] in words
    assert fraction(record["test"]["calibration"]["ece"]) in words
    assert "1 min 23 s" in words
    assert "the mean of all tokens, last layer" in words
    assert "/home/a" not in words


def test_many_classes_show_the_weakest_first() -> None:
    labels = [f"label {n:02}" for n in range(40)]
    page = finetune_page(finetune_record("classify", classify_case(800, labels)), title="x")
    assert "The 15 weakest classes" in headings(page)
    assert "All 40 classes" in page
    assert len(page) < 400_000


def test_nothing_cut_and_everything_cut_are_said(record) -> None:
    told = copy.deepcopy(record)
    told["test"]["truncation"] = {"rows_cut": 0, "share": 0.0, "tokens_cut": 0, "cut": None}
    assert "No row was truncated" in finetune_page(told, title="x")
    told["test"]["truncation"] = {
        "rows_cut": 100,
        "share": 1.0,
        "tokens_cut": 500,
        "most_tokens_cut": 9,
        "cut": {"accuracy": 0.5},
        "whole": None,
    }
    assert "there is nothing to compare with" in finetune_page(told, title="x")


def test_the_report_is_written_whole_beside_the_model(tmp_path, record) -> None:
    path = write_training_page(tmp_path, finetune_sections(record))
    assert path == tmp_path / "report.html"
    assert path.read_text(encoding="utf-8") == finetune_page(record, title=tmp_path.name)


def test_figures_are_said_as_people_say_them() -> None:
    assert percent(0.9213) == "92.1\u00a0%"
    assert percent(None) == "–"
    assert value_of("mcc", 0.27) == "0.2700"
    assert value_of("mse", 1234.5) == "1,234"
    assert value_of("accuracy", "nan") == "–"
    assert plural(1, "row") == "1 row"
    assert plural(2_000, "row") == "2,000 rows"


def test_one_evaluation_at_the_end_is_drawn(record) -> None:
    final = {"kind": "final", "step": 25, "figures": {"accuracy": 0.5}, "losses": {"task": 1.0}}
    page = finetune_page({"dev": record["dev"], "curves": [final]}, title="x")
    assert "On dev: accuracy" in headings(page)


def test_each_task_says_what_its_words_baseline_is() -> None:
    said_first = {name: headline(finetune_record(name)) for name in ("tag", "answer", "multilabel")}
    assert "Entity F1" in said_first["tag"]
    assert "most frequent tag per word 0.0" in said_first["tag"]
    assert "sliding window of question words " in said_first["answer"]
    assert "Micro F1" in said_first["multilabel"]


def test_a_model_that_a_simple_rule_beats_is_not_praised(record) -> None:
    assert not is_beaten(record)
    weak = copy.deepcopy(record)
    weak["test"]["figures"]["accuracy"] = weak["baselines"]["test"]["words"]["accuracy"]
    assert is_beaten(weak)
    assert "not worth its cost" in finetune_page(weak, title="x")
    assert "not worth its cost" not in finetune_page(record, title="x")
    assert BEATEN in terminal_lines(weak)
    assert BEATEN not in terminal_lines(record)
    numbers = {"dev": {"main": "mse", "figures": {"mse": 0.5}}}
    assert is_beaten({**numbers, "baselines": {"dev": {"words": {"mse": 0.4}}}})
    assert not is_beaten({**numbers, "baselines": {"dev": {"words": {"mse": 0.6}}}})
    both = {"majority": {"mse": 0.4}, "words": {"mse": 0.6}}
    assert is_beaten({**numbers, "baselines": {"dev": both}})
    assert not is_beaten(numbers)


def test_rows_of_one_line_are_told_apart_by_their_id() -> None:
    shown = {
        "place": "/x/squad.json:1",
        "id": "57ab",
        "texts": ["t"],
        "truth": "a",
        "prediction": "b",
    }
    page = finetune_page({"dev": {"figures": {"f1": 1.0}, "errors": {"shown": [shown]}}}, title="x")
    assert "squad.json:1 · id 57ab" in page


USED = {"regularization": {"token_dropout": 0.1}, "optimizer": {"layer_decay": 0.9}}


def rising(losses: list[float], **recipe: dict) -> dict:
    looks = [
        {"kind": "eval", "step": 100 * (n + 1), "losses": {"task": loss}}
        for n, loss in enumerate(losses)
    ]
    usual = {
        "encoder": {"frozen": False},
        "regularization": {"token_dropout": 0.0},
        "optimizer": {"layer_decay": 1.0},
    }
    return {"curves": looks, "recipe": {name: usual[name] | recipe.get(name, {}) for name in usual}}


def test_a_dev_loss_that_rose_is_told_with_what_helps() -> None:
    told = overfitting(rising([0.3, 0.25, 0.36]))
    assert "lowest after step 200 (0.250) and rose to 0.360" in told
    assert (
        "--epochs, --set regularization.token_dropout=0.1, --set optimizer.layer_decay=0.8." in told
    )
    assert told in finetune_page({**finetune_record(), **rising([0.3, 0.25, 0.36])}, title="x")


def test_settings_that_were_used_are_not_recommended() -> None:
    used = rising([0.25, 0.36], **USED)
    assert overfitting(used).endswith("Worth trying: fewer --epochs.")
    frozen = overfitting(rising([0.25, 0.36], encoder={"frozen": True}))
    assert frozen.endswith("Worth trying: fewer --epochs.")


@pytest.mark.parametrize("losses", [[], [0.3], [0.3, 0.25, 0.29], [0.4, 0.3], [0.3, float("nan")]])
def test_a_dev_loss_that_did_not_rise_is_not_mentioned(losses: list[float]) -> None:
    assert overfitting(rising(losses)) == ""


@pytest.mark.parametrize("name", CASES)
def test_terminal_report_and_json_show_the_same_digits(name) -> None:
    record = finetune_record(name)
    page = " ".join(Tree(finetune_page(record, title="x")).texts)
    terminal = "\n".join(terminal_lines(record))
    for figure, value in record["test"]["figures"].items():
        digits = value_of(figure, value)
        assert float(digits.replace(",", "")) == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert digits in page
        assert digits in terminal


def test_the_majority_class_is_called_so_with_its_label(record) -> None:
    lines = "\n".join(terminal_lines(record))
    assert "majority class (“neg”)" in lines
    assert "majority class" in finetune_page(record, title="x")
    assert "training mean" in finetune_page(finetune_record("regress"), title="x")
