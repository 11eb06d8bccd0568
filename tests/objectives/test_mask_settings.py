"""What recipes say about masking: names, tables, stages, rates, and clear refusals."""

from __future__ import annotations

import json

import pytest
from masking_cases import ENTITIES, rows, tokenizer
from pydantic import ValidationError

from bertsmith.config import to_toml, validated
from bertsmith.errors import ConfigError
from bertsmith.objectives.masked import ObjectiveTable
from bertsmith.objectives.masking.grouping import tokens, whole_words
from bertsmith.objectives.masking.masking import Masking, MaskSettings


def settings(**tree: object) -> MaskSettings:
    return validated(MaskSettings, tree, "recipe.toml")


def test_a_name_stands_for_a_table() -> None:
    assert settings(grouping="span") == settings(grouping={"kind": "span", "p": 0.2})
    assert settings() == settings(grouping="token", rate=0.15, replacement="mix")


def test_settings_go_through_toml_and_come_back(tmp_path) -> None:
    import tomllib

    file = tmp_path / "list.txt"
    file.write_text("new york\n")
    stages = [
        {"grouping": "token", "until": 0.5},
        {"grouping": {"kind": "entity", "file": str(file)}},
    ]
    for made in (
        settings(),
        settings(grouping={"kind": "ngram", "weights": [0.5, 0.5]}, rate={"start": 0.4}),
        settings(grouping=stages, replacement={"kind": "mix", "by": "unit"}, copies=10),
        settings(replacement={"kind": "similar", "synonyms": str(file)}),
    ):
        tree = tomllib.loads(to_toml(made))
        assert settings(**tree) == made
        assert MaskSettings.model_validate_json(made.model_dump_json()) == made
        json.dumps(made.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"grouping": "spam"}, "did you mean 'span'"),
        ({"grouping": {"kind": "spam"}}, "did you mean 'span'"),
        ({"replacement": "all-mask"}, "did you mean 'all_mask'"),
        ({"grouping": {"kind": "span", "longst": 3}}, "longst"),
        ({"grouping": "entity"}, "file"),
        ({"rate": 0.0}, "rate"),
        ({"rate": 1.5}, "rate"),
        ({"rate": "much"}, "rate"),
        ({"copies": 0}, "copies"),
        ({"replacement": {"kind": "mix", "mask": 0.5}}, "add up to 1"),
        ({"replacement": "similar"}, "either a file of `synonyms` or one of word `vectors`"),
        ({"grouping": []}, "grouping"),
        (
            {"grouping": [{"grouping": "token"}, {"grouping": "span", "until": 0.5}]},
            "one after another",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(tree, message) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**tree)


def test_stages_follow_one_another_as_in_ernie(tmp_path) -> None:
    file = tmp_path / "entities.txt"
    file.write_text("\n".join(ENTITIES["english"]), encoding="utf-8")
    stages = [
        {"grouping": "token", "until": 0.3},
        {"grouping": "whole_word", "until": 0.6},
        {"grouping": {"kind": "entity", "file": str(file)}},
    ]
    masking = Masking.of(settings(grouping=stages), tokenizer())
    assert masking.grouping(0.0) is tokens
    assert masking.grouping(0.29) is tokens
    assert masking.grouping(0.3) is whole_words
    assert masking.grouping(0.99) is masking.grouping(1.0) is masking.stages[2][1]


def test_a_rate_falls_in_a_line_and_then_stays() -> None:
    made = settings(rate={"start": 0.3, "end": 0.15, "until": 0.8}, grouping="whole_word")
    masking = Masking.of(made, tokenizer())
    batch = rows("english", 600)
    for share, rate in ((0.0, 0.3), (0.4, 0.225), (0.8, 0.15), (1.0, 0.15)):
        assert masking.rate.at(share) == pytest.approx(rate)
        hidden = masking(batch, share).hidden
        assert hidden.sum() / batch.real.sum() == pytest.approx(rate, rel=0.03)


def test_static_masking_repeats_its_copies_and_dynamic_does_not() -> None:
    assert [settings(copies=3).copy_of(epoch) for epoch in range(5)] == [0, 1, 2, 0, 1]
    assert [settings().copy_of(epoch) for epoch in range(3)] == [0, 1, 2]


def test_weights_name_objectives_of_the_table() -> None:
    check = ObjectiveTable.model_validate
    assert [one.name for one in check({"mlm": 1.0, "nsp": {"weight": 2.0}}).chosen] == [
        "mlm",
        "nsp",
    ]
    assert [one.name for one in check({"mlm": 1.0, "nsp": 0.0}).chosen] == ["mlm"]
    for wrong, message in (
        ({"nps": 1.0}, "nps"),
        ({"mlm": -1.0}, "greater than 0"),
        ({"mlm": True}, "mlm"),
        ({"mlm": 0.0}, "at least one"),
        ({}, "at least one"),
        ({"nsp": 1.0, "sop": 1.0}, "different ways"),
    ):
        with pytest.raises(ValidationError, match=message):
            check(wrong)
