"""Which ways to cut are compared, and what the answers of the runs say of them."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_tasks import row

from bertsmith.errors import ConfigError
from bertsmith.evaluation.length_table import LengthTable
from bertsmith.labeled.example import Label
from bertsmith.studies.lengths import length_choices, verdict, window_cost
from bertsmith.tasks.classify import Classify
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.prediction import Prediction
from bertsmith.tasks.task import score
from bertsmith.training.repeat.trials import TrialResult


def table(*tokens: int) -> LengthTable:
    return LengthTable(tokens={"train": np.array(tokens)}, limits=(64,))


def test_windows_are_tried_where_texts_are_much_longer() -> None:
    given = LengthSettings(max_length=32)
    short = length_choices(given, table(10, 40), task="classify", fields=1)
    assert list(short) == ["head", "tail", "head+tail"]
    assert [one.keep for one in short.values()] == ["head", "tail", "head+tail"]
    assert all(one.max_length == 32 for one in short.values())
    long = length_choices(given, table(10, 100), task="classify", fields=2)
    assert long["windows"] == LengthSettings(max_length=32, stride=24)
    tight = LengthSettings(max_length=6)
    found = length_choices(tight, table(40), task="classify", fields=1, windows=True)
    assert found["windows"].stride == 2  # beside the special tokens there is room for no more
    for task, fields in (("choose", 2), ("classify", 3)):
        assert "windows" not in length_choices(given, table(100), task=task, fields=fields)
        with pytest.raises(ConfigError, match="windows move over"):
            length_choices(given, table(100), task=task, fields=fields, windows=True)


def test_windows_that_take_too_long_are_tried_when_question_word() -> None:
    given = LengthSettings(max_length=32)
    assert window_cost(table(32 * 3), 32) == pytest.approx(4)

    def tried(tokens: int, windows: bool | None) -> bool:
        found = length_choices(given, table(tokens), task="classify", fields=1, windows=windows)
        return "windows" in found

    assert not tried(400, None)
    assert tried(400, True)
    assert tried(100, None)
    assert not tried(100, False)


def test_what_the_recipe_says_of_head_and_stride_stays() -> None:
    tailed = LengthSettings(max_length=32, keep="head+tail", head=8)
    found = length_choices(tailed, table(40), task="classify", fields=1)
    assert found["head+tail"] == tailed
    assert found["head"] == LengthSettings(max_length=32)
    moved = LengthSettings(max_length=32, stride=5)
    assert length_choices(moved, table(100), task="regress", fields=1)["windows"] == moved


def test_nothing_is_compared_where_nothing_is_cut() -> None:
    given = LengthSettings(max_length=32)
    assert length_choices(given, table(10, 32), task="classify", fields=1) == {}
    with pytest.raises(ConfigError, match="nothing is cut"):
        length_choices(given, table(400), task="tag", fields=1)


TASK = Classify(labels=("no", "yes"))
DEV = [row(n, [f"t{n}"], Label("yes" if n % 2 else "no")) for n in range(100)]


def tried(name: str, wrong: int) -> TrialResult:
    said = [
        Prediction(value=example.target.name if n >= wrong else "?")  # type: ignore[union-attr]
        for n, example in enumerate(DEV)
    ]
    said = [
        one if one.value != "?" else Prediction(value="no" if n % 2 else "yes")
        for n, one in enumerate(said)
    ]
    return TrialResult(name=name, figures=score(TASK, DEV, said), seconds=1.0, answers=said)


def test_a_clear_winner_is_named() -> None:
    found = verdict(TASK, DEV, [tried("head", 40), tried("tail", 5), tried("windows", 30)])
    assert (found.best, found.wins) == ("tail", True)
    assert found.words()[0] == "tail wins: better than head and windows by more than noise"
    assert found.to_json()["against"]["head"]["difference"]["value"] == pytest.approx(0.35)


def test_noise_is_called_noise() -> None:
    found = verdict(TASK, DEV, [tried("head", 21), tried("tail", 20)])
    assert (found.best, found.wins) == ("tail", False)
    assert "do not tell it from head" in found.words()[0]
    mixed = verdict(TASK, DEV, [tried("head", 21), tried("tail", 20), tried("windows", 60)])
    assert mixed.wins is False
    assert "better than windows by more than noise" in mixed.words()[0]


def test_another_figure_can_decide() -> None:
    found = verdict(TASK, DEV, [tried("head", 40), tried("tail", 5)], figure="mcc")
    assert found.figure == "mcc"
    assert found.against["head"].figure == "mcc"
