"""One vector a text, equal to sums over slices."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bertsmith.errors import ConfigError, TextError
from bertsmith.nn import POOLINGS, pool

PLAIN = {
    "mean": lambda rows: rows.sum(0) / len(rows),
    "first": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
    "max": lambda rows: rows.max(0).values,
    "mean_sqrt_len": lambda rows: rows.sum(0) / len(rows) ** 0.5,
    "weighted_mean": lambda rows: (
        sum((n + 1) * row for n, row in enumerate(rows)) / sum(range(1, len(rows) + 1))
    ),
}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(0, 10**6))
def test_poolings_equal_plain_sums_and_gradients_flow(lengths: list[int], seed: int) -> None:
    assert set(PLAIN) == set(POOLINGS)
    random = torch.Generator().manual_seed(seed)
    rows = torch.randn(sum(lengths), 5, generator=random, requires_grad=True)
    for name, plain in PLAIN.items():
        expected = torch.stack([plain(part) for part in rows.split(lengths)])
        got = pool(name, rows, lengths)
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
        weights = torch.randn(got.shape, generator=random)
        torch.testing.assert_close(_slope(got, weights, rows), _slope(expected, weights, rows))


def _slope(pooled: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
    return torch.autograd.grad((pooled * weights).sum(), rows)[0]


@pytest.mark.parametrize("name", POOLINGS)
def test_no_texts_give_no_vectors(name: str) -> None:
    assert pool(name, torch.zeros(0, 5), []).shape == (0, 5)


def test_bad_poolings_are_named() -> None:
    with pytest.raises(ConfigError, match="did you mean 'mean'"):
        pool("meen", torch.zeros(2, 3), [2])
    with pytest.raises(TextError, match="add up to 3, but there are 2 rows"):
        pool("mean", torch.zeros(2, 3), [3])
    with pytest.raises(TextError, match="text 1 has no tokens"):
        pool("mean", torch.zeros(2, 3), [2, 0])
