"""The writer without a cache: what it feeds to the model, row by row."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import randomized, shrunk

from bertsmith.errors import ConfigError, TextError
from bertsmith.models.build import Model, build
from bertsmith.nn import Causal, Inputs, Prefix
from bertsmith.runtime.generation.forms import CausalForm, PrefixForm
from bertsmith.runtime.generation.plain import PlainWriter

PROMPTS = [np.array([3, 4, 5]), np.array([6]), np.array([7, 8])]
MASK = 2


@pytest.fixture(scope="module")
def model() -> Model:
    spec = shrunk("bert", vocab_size=30, hidden=16, heads=2, rows=8)
    return randomized(build("bert", spec, heads=["masked_lm"]))


@torch.no_grad()
def test_a_prompt_is_continued_row_by_row(model: Model) -> None:
    writer = PlainWriter(model, CausalForm())
    state = writer.begin(PROMPTS)
    assert state.logits.shape == (3, 30)
    writer.keep(state, torch.tensor([2, 0, 2]))  # the second text leaves, the third goes twice
    assert state.texts.tolist() == [2, 0, 2]
    writer.step(state, torch.tensor([9, 10, 11]))
    logits = writer.step(state, torch.tensor([12, 13, 14]))
    for row, text in enumerate(([7, 8, 9, 12], [3, 4, 5, 10, 13], [7, 8, 11, 14])):
        alone = model(Inputs.of(np.array(text), [len(text)], sees=Causal())).hidden[-1:]
        torch.testing.assert_close(logits[row], model.logits("masked_lm", alone)[0])
    writer.keep(state, torch.tensor([], dtype=torch.long))
    assert writer.step(state, torch.tensor([], dtype=torch.long)).shape == (0, 30)


@pytest.mark.parametrize("by", ["mask", "shift"])
@torch.no_grad()
def test_a_target_follows_its_source(model: Model, by: str) -> None:
    writer = PlainWriter(model, PrefixForm(by, 1, 0, MASK))
    state = writer.begin(PROMPTS)
    logits = writer.step(state, torch.tensor([9, 10, 11]))
    target = [10, MASK] if by == "mask" else [10]
    inputs = Inputs.of(
        np.array([6, *target]),
        [1 + len(target)],
        sees=Prefix((1,)),
        channels={"segments": np.array([1] + [0] * len(target))},
    )
    alone = model.logits("masked_lm", model(inputs).hidden[-1:])
    torch.testing.assert_close(logits[1], alone[0])


def test_positions_are_counted_in_steps(model: Model) -> None:
    causal = PlainWriter(model, CausalForm())
    assert causal.positions_left(np.arange(6)) == 2
    assert causal.positions_left(np.arange(6), 2) == 0
    mask = PlainWriter(model, PrefixForm("mask", mask_id=MASK))
    assert mask.positions_left(np.arange(6)) == 1
    assert causal.begun(PROMPTS[0]) == (3, 4, 5)
    assert mask.begun(PROMPTS[0]) == ()
    with pytest.raises(TextError, match="source 1 has 9 tokens, 1 more than the positions"):
        causal.begin([np.arange(2), np.arange(9)])
    with pytest.raises(TextError, match="source 0 has no tokens"):
        causal.begin([np.arange(0)])
    with pytest.raises(ConfigError, match="needs a mask token"):
        PrefixForm("mask")
