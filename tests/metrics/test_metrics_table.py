"""Promises for every task of the table: main first, bounded, perfect is one, any order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bertsmith.errors import ConfigError
from bertsmith.metrics import Decisions, better
from bertsmith.metrics.multilabel import decide
from bertsmith.metrics.significance import bootstrap, paired_bootstrap
from bertsmith.tasks.kinds import TASKS

LABELS = ("a", "b", "c")
RANDOM = np.random.default_rng(4)
TABLE = RANDOM.random((40, 3)) < 0.4
TAGS = [list(RANDOM.choice(["O", "B-X", "I-X", "B-Y"], 6)) for _ in range(40)]
CLASSES = RANDOM.integers(0, 3, 40)
NUMBERS = RANDOM.normal(size=40)
GOLDS = [[f"word {n % 7}", "other"] if n % 5 else [] for n in range(40)]
# task -> targets, perfect predictions, poor predictions, labels
CASES = {
    "classify": (CLASSES, CLASSES, np.roll(CLASSES, 1), LABELS),
    "multilabel": (TABLE, decide(TABLE.astype(float)), np.roll(TABLE, 1, axis=0), LABELS),
    "regress": (NUMBERS, 3 * NUMBERS - 1, np.roll(NUMBERS, 1), ()),
    "tag": (TAGS, TAGS, TAGS[1:] + TAGS[:1], ()),
    "answer": (GOLDS, [g[0] if g else "" for g in GOLDS], ["word 1"] * 40, ()),
    "choose": (CLASSES, CLASSES, np.roll(CLASSES, 1), ()),
}
EACH = pytest.mark.parametrize("task", TASKS)


def taken(side, rows):
    if isinstance(side, Decisions):
        return Decisions(side.probabilities[rows], side.chosen[rows])
    return side[rows] if isinstance(side, np.ndarray) else [side[row] for row in rows]


def test_every_task_has_figures_and_baselines() -> None:
    assert CASES.keys() == TASKS.keys()
    assert all(kind.majority and kind.words for kind in TASKS.values())


@EACH
def test_the_main_figure_comes_first_and_perfect_is_one(task) -> None:
    targets, perfect, poor, labels = CASES[task]
    best = TASKS[task].metric.score(targets, perfect, labels)
    assert next(iter(best)) == TASKS[task].metric.main
    assert best[TASKS[task].metric.main] == pytest.approx(1.0)
    worse = TASKS[task].metric.score(targets, poor, labels)
    assert worse.keys() <= best.keys()
    for name, value in worse.items():
        assert type(value) is float
        assert name == "mse" or -1 <= value <= 1
    assert better(
        TASKS[task].metric.main, best[TASKS[task].metric.main], worse[TASKS[task].metric.main]
    )


@EACH
def test_the_order_of_rows_changes_nothing(task) -> None:
    targets, _, poor, labels = CASES[task]
    order = np.random.default_rng(1).permutation(40)
    first = TASKS[task].metric.score(targets, poor, labels)
    second = TASKS[task].metric.score(taken(targets, order), taken(poor, order), labels)
    assert first == pytest.approx(second)


@EACH
def test_a_figure_of_drawn_rows_is_the_score_of_those_rows(task) -> None:
    targets, _, poor, labels = CASES[task]
    drawn = np.random.default_rng(2).integers(0, 40, 40)
    expected = TASKS[task].metric.score(taken(targets, drawn), taken(poor, drawn), labels)
    for name in (None, *TASKS[task].metric.score(targets, poor, labels)):
        figure = TASKS[task].metric.figure(targets, poor, labels, name)
        wanted = expected[name or TASKS[task].metric.main]
        assert figure(drawn) == pytest.approx(wanted, nan_ok=True)


@EACH
def test_bootstrap_and_comparison_need_no_knowledge_of_the_task(task) -> None:
    targets, perfect, poor, labels = CASES[task]
    one = TASKS[task].metric.figure(targets, poor, labels)
    two = TASKS[task].metric.figure(targets, perfect, labels)
    interval = bootstrap(one, 40, samples=100)
    assert interval.low <= interval.value <= interval.high
    difference = paired_bootstrap(one, two, 40, samples=100)
    assert difference.low > 0
    assert difference.p < 0.05


@EACH
def test_uneven_and_empty_sides_are_named(task) -> None:
    targets, perfect, _, labels = CASES[task]
    with pytest.raises(ConfigError, match="39 targets, but 40 predictions"):
        TASKS[task].metric.score(taken(targets, range(39)), perfect, labels)
    with pytest.raises(ConfigError, match="no rows"):
        TASKS[task].metric.score(taken(targets, []), taken(perfect, []), labels)
    with pytest.raises(ConfigError, match="no figure is called 'nothing'"):
        TASKS[task].metric.figure(targets, perfect, labels, "nothing")


def test_scores_of_classes_are_decided_by_the_largest() -> None:
    metric = TASKS["classify"].metric
    scores = np.eye(3)[CLASSES] + 0.1
    assert metric.score(CLASSES, scores, LABELS) == metric.score(CLASSES, CLASSES, LABELS)


def test_two_classes_have_the_f1_of_the_second() -> None:
    found = TASKS["classify"].metric.score([0, 1, 1, 0], [1, 1, 0, 0], ("no", "yes"))
    assert found["f1"] == pytest.approx(0.5)
    assert "f1" not in TASKS["classify"].metric.score(CLASSES, CLASSES, LABELS)


def test_labels_from_probabilities_from_decisions_and_from_marks() -> None:
    chances = np.where(TABLE, 0.6, 0.3)
    score = TASKS["multilabel"].metric.score
    by_chance = score(TABLE, chances, LABELS)
    assert by_chance == score(TABLE, decide(chances, 0.5), LABELS)
    marked = score(TABLE, chances >= 0.5, LABELS)
    assert marked == {k: v for k, v in by_chance.items() if k != "average_precision"}
    assert score(TABLE, decide(chances, 0.2), LABELS)["f1_micro"] < 1.0
    with pytest.raises(ConfigError, match="do not belong together"):
        score(TABLE, chances, ("a", "b"))


def test_tags_of_no_scheme_are_judged_unit_by_unit() -> None:
    found = TASKS["tag"].metric.score([["NN", "VB", "NN"]], [["NN", "NN", "NN"]], ("NN", "VB"))
    assert found["f1"] == found["accuracy"] == pytest.approx(2 / 3)
    assert found["f1_macro"] == pytest.approx((0.8 + 0.0) / 2)


def test_answers_say_both_kinds_of_question_and_take_the_rules_by_name() -> None:
    score = TASKS["answer"].metric.score
    found = score([["red"], [], ["blue"]], ["red", "x", ""])
    assert found["exact_answerable"] == 0.5
    assert found["f1_unanswerable"] == 0.0
    assert list(score([["red"]], ["red"])) == ["f1", "exact"]
    assert score([["the"]], ["the"])["f1"] == 0.0
    assert score([["the"]], ["the"], ("squad2",))["f1"] == 1.0
    assert score([["the"]], [None], ("squad2",))["f1"] == 0.0


def test_better_knows_the_way_up_and_that_nan_is_no_score() -> None:
    assert better("accuracy", 0.8, 0.7)
    assert not better("accuracy", 0.7, 0.7)
    assert better("mse", 0.7, 0.8)
    assert not better("mse", 0.8, 0.7)
    assert not better("spearman", math.nan, -1.0)
    assert better("spearman", -1.0, math.nan)
    assert not better("spearman", math.nan, math.nan)
