"""Two models on the same rows: the difference, its interval, and a verdict in plain words."""

from __future__ import annotations

import json
import math
import random

import pytest
from tiny_tasks import row

from bertsmith.errors import ConfigError
from bertsmith.evaluation.comparison import compare
from bertsmith.labeled.example import (
    Answers,
    ChoiceIndex,
    Example,
    Label,
    LabelSet,
    ScoreTarget,
    Tagged,
)
from bertsmith.tasks.answer.answer import FindAnswer
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.multilabel import Multilabel
from bertsmith.tasks.prediction import PredictedAnswer, Prediction
from bertsmith.tasks.regress import Regress
from bertsmith.tasks.tag.tag import Tag

TASK = Classify(labels=("no", "yes"))


def labeled(count: int) -> list[Example]:
    rng = random.Random(0)
    return [row(n, ["a"], Label(rng.choice(TASK.labels))) for n in range(count)]


def answers(rows: list[Example], right: list[bool]) -> list[Prediction]:
    other = {"no": "yes", "yes": "no"}
    return [
        Prediction(value=example.target.name if good else other[example.target.name])
        for example, good in zip(rows, right, strict=True)
    ]


def test_a_clear_winner_is_named_whatever_the_order() -> None:
    rows = labeled(300)
    weak = answers(rows, [n % 3 != 0 for n in range(300)])
    strong = answers(rows, [n % 30 != 0 for n in range(300)])
    found = compare(TASK, rows, weak, strong)
    assert (found.winner, found.only_first, found.only_second) == (1, 0, 90)
    assert found.difference.value == pytest.approx(0.3)
    assert found.difference.low < 0.3 < found.difference.high
    assert found.rows_p < 1e-9
    assert "B is significantly better" in found.words()[-1]
    turned = compare(TASK, rows, strong, weak)
    assert turned.winner == 0
    assert turned.difference.value == pytest.approx(-0.3)
    assert "small is significantly better" in turned.words("small", "large")[-1]


def test_equal_models_are_not_told_apart() -> None:
    rows = labeled(100)
    same = answers(rows, [n % 4 != 0 for n in range(100)])
    found = compare(TASK, rows, same, same)
    assert found.winner is None
    assert (found.difference.p, found.rows_p) == (1.0, 1.0)
    assert "between A and B is not significant" in found.words()[-1]


def test_chance_names_a_winner_about_as_rarely_as_it_should() -> None:
    rng = random.Random(1)
    rows = labeled(80)
    named = 0
    for _ in range(60):
        sides = [answers(rows, [rng.random() < 0.8 for _ in rows]) for _ in range(2)]
        named += compare(TASK, rows, *sides, samples=100).winner is not None
    assert named <= 9  # 3 are expected; more than 9 of 60 come once in 500 tries


def test_a_figure_where_less_is_better_is_won_by_less() -> None:
    rows = [row(n, ["a"], ScoreTarget(float(n))) for n in range(60)]
    near = [Prediction(value=n + 0.1) for n in range(60)]
    far = [Prediction(value=n + (5.0 if n % 2 else -5.0)) for n in range(60)]
    found = compare(Regress(), rows, far, near, figure="mse")
    assert found.difference.value < 0
    assert found.winner == 1
    assert (found.only_first, found.only_second) == (0, 60)
    assert "sign test" in found.words()[2]


def test_every_task_is_compared_row_by_row() -> None:
    tagged = Tagged(((0, 1), (2, 3)), ("B-x", "O"))
    cases = [
        (Choose(), ChoiceIndex(0), 0, 1),
        (Multilabel(labels=("a", "b")), LabelSet(("a",)), ("a",), ("a", "b")),
        (Regress(), ScoreTarget(1.0), 1.0, 3.0),
        (
            FindAnswer(),
            Answers((("red", 0),)),
            PredictedAnswer("red", 0, 3, 1.0),
            PredictedAnswer("x", 4, 5, 1.0),
        ),
        (Tag(labels=("O", "B-x", "I-x")), tagged, ("B-x", "O"), ("O", "O")),
    ]
    for task, target, good, bad in cases:
        texts = ["a b"] if task.name == "tag" else ["a", "red x", "c"]
        rows = [row(n, texts, target) for n in range(6)]

        def said(value: object, name: str = task.name) -> Prediction:
            if name == "tag":
                return Prediction(value=(), tags=value)
            return Prediction(value=value, probabilities={"a": 0.9, "b": 0.2})

        first = [said(good if n < 1 else bad) for n in range(6)]
        second = [said(good if n < 4 else bad) for n in range(6)]
        found = compare(task, rows, first, second, samples=100)
        assert (found.only_first, found.only_second) == (0, 3), task.name
        assert found.binary == (task.name == "choose")


def test_a_figure_that_does_not_exist_becomes_null() -> None:
    rows = [row(n, ["a"], ScoreTarget(float(n))) for n in range(5)]
    flat = [Prediction(value=1.0)] * 5
    found = compare(Regress(), rows, flat, flat, samples=100)
    assert math.isnan(found.difference.value)
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["difference"]["value"] is None
    assert told["winner"] is None


def test_rows_and_answers_must_be_equally_many() -> None:
    rows = labeled(3)
    with pytest.raises(ConfigError, match="3 rows, 2 and 3 predictions"):
        compare(TASK, rows, answers(rows[:2], [True] * 2), answers(rows, [True] * 3))
