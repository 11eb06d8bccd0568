"""Every legal way to make a vector of a text, by name, and no other."""

from __future__ import annotations

import pytest

from bertsmith.errors import BertsmithError
from bertsmith.tasks.model.text_vector import (
    TextVector,
    VectorSettings,
    choice_name,
    vector_choices,
)


@pytest.mark.parametrize("blocks", [1, 2, 4, 12])
def test_all_of_them_can_be_built_and_have_names_of_their_own(blocks: int) -> None:
    found = vector_choices(blocks)
    for name, choice in found.items():
        assert choice_name(choice) == name
        TextVector(choice, hidden=8, layers=blocks)
    assert len({(c.pooling, c.layers) for c in found.values()}) == len(found)
    four = 8 if blocks >= 4 else 0
    below = 4 if blocks > 1 else 0
    assert len(found) == 4 + below + four + 4 + 1  # last, below it, sum4 and concat4, weighted, all


def test_a_choice_can_be_narrowed_down() -> None:
    found = vector_choices(6, ["mean", "first"], ["0", "concat4", "all_first"])
    assert list(found) == [
        "mean-layer0",
        "first-layer0",
        "mean-concat4",
        "first-concat4",
        "first-all",
    ]
    assert found["mean-layer0"] == VectorSettings(pooling="mean", layers=0)


@pytest.mark.parametrize(
    ("poolings", "layers", "message"),
    [
        (["middle"], [], "middle"),
        ([], ["7"], "there is no layer 7; the model has 2"),
        ([], ["sum4"], "sum4 reads four layers; the model has 2"),
        ([], ["latest"], "did you mean 'last'"),
        (["mean"], ["all_first"], "give --pooling first"),
    ],
)
def test_what_is_not_possible_is_said(poolings: list[str], layers: list[str], message: str) -> None:
    with pytest.raises(BertsmithError, match=message):
        vector_choices(2, poolings, layers)
