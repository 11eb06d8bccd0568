"""Cutting projected rows into heads: the same views and gradients as plain slicing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertsmith.nn.attention import cut_heads
from bertsmith.nn.attention_plan import Grid, attention_plan
from bertsmith.nn.layout import Layout

HEADS, WIDTH = 2, 3


def sides_of(lengths: list[int], asked: list[int] | None = None) -> list[Grid]:
    rows = None if asked is None else torch.tensor(asked)
    return [group.keys for group in attention_plan(Layout.of(lengths), rows=rows).groups]


def sliced(joined: torch.Tensor, side: Grid, which: int) -> torch.Tensor:
    """(texts, H, width, K) by definition."""
    deep = HEADS * WIDTH
    rows = joined[side.start : side.start + side.count, which * deep : (which + 1) * deep]
    return rows.reshape(side.texts, side.width, HEADS, WIDTH).transpose(1, 2)


@given(lengths=st.lists(st.integers(0, 4), max_size=6), count=st.integers(1, 3))
def test_heads_and_their_gradient_are_those_of_slices(lengths: list[int], count: int) -> None:
    sides = sides_of(lengths)
    ours = torch.randn(sum(lengths), count * HEADS * WIDTH, dtype=torch.double, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    found = [part for group in cut_heads(ours, sides, count=count, heads=HEADS) for part in group]
    wanted = [sliced(theirs, side, which) for side in sides for which in range(count)]
    assert len(found) == len(wanted)
    assert all(map(torch.equal, found, wanted))
    if not found:
        return
    for parts in (found, wanted):
        sum((part * part * (at + 1)).sum() for at, part in enumerate(parts)).backward()
    assert torch.equal(ours.grad, theirs.grad)


def test_rows_of_texts_that_nobody_asks_about_get_a_gradient_of_zero() -> None:
    sides = sides_of([2, 1, 3], asked=[0, 4])  # none of the second text
    rows = torch.ones(6, HEADS * WIDTH, requires_grad=True)
    parts = cut_heads(rows, sides, count=1, heads=HEADS)
    sum(part.sum() for (part,) in parts).backward()
    assert rows.grad[:, 0].tolist() == [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("tracked", [True, False])
def test_nothing_is_copied_where_nothing_is_padded(tracked: bool) -> None:
    joined = torch.randn(6, 3 * HEADS * WIDTH, requires_grad=tracked)
    for group in cut_heads(joined, sides_of([3, 3]), count=3, heads=HEADS):
        for part in group:
            assert part.untyped_storage().data_ptr() == joined.untyped_storage().data_ptr()
