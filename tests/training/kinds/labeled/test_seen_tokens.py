"""Leaving out the rows of tokens that no text has changes nothing that is learned."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertsmith.training.embedding_subset import EmbeddingSubset

SEEN = [1, 4, 5]
IDS = torch.tensor([4, 1, 4, 5, 5, 5])


def table() -> nn.Embedding:
    torch.manual_seed(0)
    return nn.Embedding(9, 3)


def test_rows_are_found_by_the_numbers_of_the_whole_table() -> None:
    whole = table()
    assert torch.equal(EmbeddingSubset(whole, SEEN)(IDS), whole(IDS))


def test_training_moves_the_same_rows_in_the_same_way_and_no_others() -> None:
    whole, source = table(), table()
    part = EmbeddingSubset(source, SEEN)
    target = torch.randn(6, 3)
    for module in (whole, part):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.0)
        for _ in range(3):
            optimizer.zero_grad()
            ((module(IDS) - target) ** 2).sum().backward()
            optimizer.step()
    before = table().weight
    after = part.put_back().weight
    assert torch.equal(after, whole.weight)
    others = [row for row in range(9) if row not in SEEN]
    assert torch.equal(after[others], before[others])
    assert not torch.equal(after[SEEN], before[SEEN])


def test_only_the_rows_that_are_there_are_parameters_and_state() -> None:
    part = EmbeddingSubset(table(), SEEN)
    assert [(name, tuple(value.shape)) for name, value in part.named_parameters()] == [
        ("weight", (3, 3))
    ]
    assert list(part.state_dict()) == ["weight"]


def test_a_token_that_was_left_out_is_not_taken_for_another() -> None:
    with pytest.raises(IndexError):
        EmbeddingSubset(table(), SEEN)(torch.tensor([0]))
