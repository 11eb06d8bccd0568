"""A pair that is read both ways round: one answer, whichever text comes first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_finetuning import RECIPE, rows, tiny_folder, tiny_job
from tiny_tasks import row, word_tokenizer

from bertsmith.data.examples.example import Choice, Example, Score
from bertsmith.errors import ConfigError
from bertsmith.runtime.predictor import load_predictor
from bertsmith.tasks.answer import FindAnswer
from bertsmith.tasks.choose import Choose
from bertsmith.tasks.length import LengthSettings, encodings
from bertsmith.training.finetune import finetune

PAIRS = [("red bird", "blue stone river"), ("tree", "tree house")]


def pairs(count: int, seed: int) -> list[Example]:
    """How many birds there are in both texts."""
    texts = [example.texts[0] for example in rows(2 * count, seed=seed)]
    return [
        row(n, [a, b], Score(float(f"{a} {b}".count("bird"))))
        for n, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))
    ]


def turned(examples: list[Example]) -> list[Example]:
    return [replace(example, texts=example.texts[::-1]) for example in examples]


def test_both_orders_are_those_of_the_tokenizer() -> None:
    tokenizer = word_tokenizer()
    found = encodings(PAIRS, tokenizer, LengthSettings(both_orders=True))
    assert [[list(way.ids) for way in ways] for ways in found] == [
        [list(tokenizer.encode(*pair).ids), list(tokenizer.encode(*pair[::-1]).ids)]
        for pair in PAIRS
    ]
    cut = encodings(PAIRS, tokenizer, LengthSettings(max_length=6, both_orders=True))
    assert [[way.total_cut for way in ways] for ways in cut] == [[2, 2], [0, 0]]


@pytest.mark.parametrize("pooling", ["published", "mean"])
@pytest.mark.parametrize("both", [True, False])
def test_the_answer_does_not_hang_on_the_order(tmp_path: Path, pooling: str, both: bool) -> None:
    source = tiny_folder(tmp_path / "source")
    recipe = RECIPE.model_copy(
        update={
            "length": LengthSettings(both_orders=both),
            "vector": RECIPE.vector.model_copy(update={"pooling": pooling}),
        }
    )
    train, dev = pairs(80, seed=3), pairs(40, seed=4)
    job = tiny_job(source, tmp_path / "out", "regress", recipe=recipe, train=train, dev=dev)
    finetune(job)
    predictor = load_predictor(tmp_path / "out")
    there, back = (
        np.array([one.value for one in predictor.predict([e.texts for e in some])])
        for some in (dev, turned(dev))
    )
    assert there.std() > 0
    assert (np.abs(there - back).max() < 1e-3 * there.std()) == both


@pytest.mark.parametrize(
    ("texts", "said"), [(("red",), "a row has 1"), (("red", "blue", "tree"), "a row has 3")]
)
def test_rows_that_are_no_pairs_are_refused(texts: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        encodings([PAIRS[0], texts], word_tokenizer(), LengthSettings(both_orders=True))


def test_tasks_whose_texts_have_roles_refuse_it() -> None:
    lengths = LengthSettings(both_orders=True)
    choice = row(0, ["red", "blue", "tree"], Choice(0))
    with pytest.raises(ConfigError, match=r"length\.both_orders"):
        Choose().features([choice], word_tokenizer(), lengths)
    with pytest.raises(ConfigError, match=r"length\.both_orders"):
        FindAnswer().features([row(0, ["red", "blue tree"])], word_tokenizer(), lengths)


@pytest.mark.parametrize("other", [{"stride": 4}, {"budgets": (4, 9)}])
def test_settings_that_treat_fields_differently_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="both_orders turns a pair round"):
        LengthSettings.model_validate({"both_orders": True, **other})
