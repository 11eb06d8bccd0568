"""The proof of every task: figures as the metrics give them, sections that add up, plain JSON."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from proof_cases import CASES, classify_case, example, multilabel_case, regress_case, tag_case

from bertsmith.errors import ConfigError
from bertsmith.evaluation.proof import MOST_LABELS, OTHERS, prove
from bertsmith.labeled.example import Label
from bertsmith.metrics.calibration import reliability
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import score


@pytest.mark.parametrize("name", CASES)
def test_figures_are_those_of_the_metrics_and_the_json_is_strict(name) -> None:
    task, examples, said = CASES[name]()
    found = prove(task, examples, said)
    assert found.figures == score(task, examples, said)
    assert found.interval.value == pytest.approx(found.figures[found.main], abs=1e-12)
    assert found.interval.low <= found.figures[found.main] <= found.interval.high
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["rows"] == len(examples)
    assert told["main"] == next(iter(told["figures"]))
    assert told["errors"]["shown"]


def test_the_confusion_and_the_class_table_count_every_row() -> None:
    task, examples, said = classify_case()
    told = prove(task, examples, said).to_json()
    counts = np.array(told["confusion"]["counts"])
    assert counts.sum() == len(examples)
    assert np.trace(counts) == told["right"]
    assert told["errors"]["wrong"] == len(examples) - told["right"]
    for number, row in enumerate(told["classes"]):
        assert row["label"] == task.labels[number]
        assert row["support"] == counts[number].sum()
        assert row["predicted"] == counts[:, number].sum()
        assert row["recall"] == pytest.approx(counts[number, number] / counts[number].sum())


def test_many_labels_become_thirty_with_the_rest_as_one() -> None:
    labels = [f"label {n:03}" for n in range(50)]
    task, examples, said = classify_case(2_000, labels)
    told = prove(task, examples, said).to_json()["confusion"]
    assert len(told["labels"]) == MOST_LABELS
    assert told["labels"][-1] == OTHERS
    assert told["joined"] == 50 - MOST_LABELS + 1
    counts = np.array(told["counts"])
    assert counts.sum() + told["mixed"] == 2_000
    wrong = sum(e.target.name != s.value for e, s in zip(examples, said, strict=True))
    assert np.trace(counts) == 2_000 - wrong


def test_worst_errors_are_the_surest_wrong_rows_with_their_place() -> None:
    task, examples, said = classify_case(500)
    shown = prove(task, examples, said).to_json()["errors"]["shown"]
    wrong = [
        (s.confidence, f"{e.source}:{e.line}", e.target.name, s.value)
        for e, s in zip(examples, said, strict=True)
        if e.target.name != s.value
    ]
    wrong.sort(key=lambda one: -one[0])
    told = [(one["confidence"], one["place"], one["truth"], one["prediction"]) for one in shown]
    assert told == wrong[: len(told)]
    assert len(told) == min(50, len(wrong))


def test_long_texts_are_shortened_where_all_can_see() -> None:
    row = example(0, ["a" * 5_000 + " the end"], Label("x"))
    said = Prediction(value="y", probabilities={"x": 0.1, "y": 0.9}, confidence=0.9)
    shown = prove(Classify(labels=("x", "y")), [row], [said]).to_json()["errors"]["shown"][0]
    text = shown["texts"][0]
    assert len(text) < 500
    assert text.endswith("the end")
    assert "characters" in text
    assert shown["truth_confidence"] == 0.1


def test_the_calibration_error_is_the_one_of_all_probabilities() -> None:
    task, examples, said = classify_case(400)
    told = prove(task, examples, said).to_json()["calibration"]
    chances = np.array([[s.probabilities[label] for label in task.labels] for s in said])
    truth = np.array([task.labels.index(e.target.name) for e in examples])
    bins = reliability(chances.max(axis=1), chances.argmax(axis=1) == truth)
    assert told["ece"] == pytest.approx(bins.error)
    assert sum(one["count"] for one in told["bins"]) == 400


def test_truncation_compares_rows_that_were_cut_with_the_others() -> None:
    task, examples, said = classify_case(300)
    told = prove(task, examples, said).to_json()["truncation"]
    cut = [n for n, one in enumerate(said) if one.cut]
    whole = [n for n, one in enumerate(said) if not one.cut]
    assert (told["rows_cut"], told["tokens_cut"]) == (len(cut), 60 * len(cut))
    for key, rows in (("cut", cut), ("whole", whole)):
        wanted = score(task, [examples[n] for n in rows], [said[n] for n in rows])
        assert told[key] == pytest.approx(wanted)
    nothing = [replace(one, cut=0) for one in said]
    assert prove(task, examples, nothing).to_json()["truncation"]["cut"] is None


def test_thresholds_stand_in_the_table_of_labels() -> None:
    task, examples, said = multilabel_case()
    told = prove(task, examples, said).to_json()
    assert [row["threshold"] for row in told["classes"]] == pytest.approx([0.3, 0.4, 0.5])
    assert "confusion" not in told
    worst = told["errors"]["shown"]
    assert [one["confidence"] for one in worst] == sorted(
        (one["confidence"] for one in worst), reverse=True
    )


def test_numbers_have_points_and_residuals_that_add_up() -> None:
    task, examples, said = regress_case(2_500)
    told = prove(task, examples, said).to_json()
    found = told["numbers"]
    assert len(found["points"]) <= 800
    assert found["points_of"] == 2_500
    assert sum(one["count"] for one in found["bins"]) == 2_500
    away = np.array([s.value - e.target.value for e, s in zip(examples, said, strict=True)])
    assert found["bias"] == pytest.approx(away.mean())
    assert told["right"] is None
    first = told["errors"]["shown"][0]
    assert abs(float(first["prediction"]) - float(first["truth"])) == pytest.approx(
        np.abs(away).max(), abs=0.01
    )


def test_constant_numbers_have_no_correlation_and_are_still_proved() -> None:
    task, examples, said = regress_case(20)
    flat = [replace(one, value=2.5) for one in said]
    told = prove(task, examples, flat).to_json()
    assert told["figures"]["spearman"] is None
    assert told["interval"] == {"low": None, "high": None}
    assert math.isfinite(told["figures"]["mse"])


def test_entities_are_told_apart_by_how_they_are_wrong() -> None:
    task, examples, said = tag_case()
    told = prove(task, examples, said).to_json()
    kinds = told["entity_errors"]
    wanted = sum(row["support"] for row in told["classes"])
    given = sum(row["predicted"] for row in told["classes"])
    pairs = kinds["right"] + kinds["other type"] + kinds["other borders"]
    pairs += kinds["other type and borders"]
    assert pairs + kinds["missed"] == wanted
    assert pairs + kinds["invented"] == given
    units = sum(len(one.target.tags) for one in examples)
    assert np.array(told["confusion"]["counts"]).sum() == units
    assert set(told["confusion"]["labels"]) == {"O", "PER", "LOC"}


def test_rows_without_a_label_are_counted_and_only_such_rows_are_refused() -> None:
    task, examples, said = classify_case(10)
    some = [replace(e, target=None) if n < 3 else e for n, e in enumerate(examples)]
    found = prove(task, some, said)
    assert (found.rows, found.unlabeled) == (7, 3)
    with pytest.raises(ConfigError, match="none of the 10 rows"):
        prove(task, [replace(e, target=None) for e in examples], said)
    with pytest.raises(ConfigError, match="9 predictions"):
        prove(task, examples, said[:9])
