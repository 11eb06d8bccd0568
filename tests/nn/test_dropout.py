"""The masks of dropout: their rate, their mean, their seed, and the gradient through them."""

from __future__ import annotations

import pytest
import torch

from bertsmith.nn.dropout import dropout, dropout_added, keep_mask

SHAPE = torch.Size((400, 501))  # an odd number of places: the last raw number is used in part


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.93])
def test_each_place_is_dropped_with_the_chance_asked_for(rate: float) -> None:
    torch.manual_seed(1)
    mask = keep_mask(SHAPE, rate, torch.float32)
    values = mask.unique()
    assert len(values) == 2
    assert values[0] == 0
    deviation = (rate * (1 - rate) / mask.numel()) ** 0.5
    assert (mask == 0).float().mean() == pytest.approx(rate, abs=5 * deviation)
    assert float(values[1]) == pytest.approx(1 / (1 - rate), rel=2e-4)


def test_places_are_dropped_independently_of_their_neighbors() -> None:
    torch.manual_seed(2)
    gone = (keep_mask(SHAPE, 0.1, torch.float32) == 0).float()
    for near in ((gone[:, 1:] * gone[:, :-1]), (gone[1:] * gone[:-1]), gone[:, 4:] * gone[:, :-4]):
        assert near.mean() == pytest.approx(0.01, abs=5 * (0.01 * 0.99 / near.numel()) ** 0.5)


def test_the_same_seed_gives_the_same_mask_and_the_next_draw_another() -> None:
    torch.manual_seed(3)
    first, second = (keep_mask(SHAPE, 0.1, torch.float32) for _ in range(2))
    torch.manual_seed(3)
    assert torch.equal(keep_mask(SHAPE, 0.1, torch.float32), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0])
def test_values_and_gradients_are_those_of_the_mask(rate: float) -> None:
    change = torch.randn(64, 33, requires_grad=True)
    kept = torch.randn(64, 33, requires_grad=True)
    torch.manual_seed(4)
    found = dropout_added(change, kept, rate)
    torch.manual_seed(4)
    alone = dropout(change, rate)
    assert torch.allclose(found, alone + kept, atol=1e-6)
    weights = torch.randn_like(found)
    torch.autograd.backward(found, weights)
    mask = alone.detach() / change.detach()
    assert torch.allclose(change.grad, weights * mask, atol=1e-6)
    assert torch.equal(kept.grad, weights)
    assert (found - kept).detach().abs().sum() > 0 or rate == 1.0


def test_other_devices_use_torchs_own() -> None:
    there = torch.empty(3, 4, device="meta")
    assert dropout(there, 0.1).device.type == "meta"
    assert dropout_added(there, there, 0.1).shape == (3, 4)
