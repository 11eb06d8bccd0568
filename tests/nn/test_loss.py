"""Losses as sums and counts: any split of a batch gives the same total."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from bertsmith.nn.loss import binary_cross_entropy, cross_entropy, squared_error


def test_micro_batches_add_up_to_the_whole_batch() -> None:
    logits, targets = torch.randn(10, 4), torch.randint(0, 4, (10,))
    total = cross_entropy(logits[:7], targets[:7]) + cross_entropy(logits[7:], targets[7:])
    torch.testing.assert_close(total.sum / total.count, F.cross_entropy(logits, targets))
    assert total.count == 10


def test_no_masked_rows_give_zero_of_zero() -> None:
    loss = cross_entropy(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long))
    assert (float(loss.sum), loss.count) == (0.0, 0)


def test_yes_or_no_and_regression_equal_torch() -> None:
    logits, targets = torch.randn(5), torch.tensor([1, 0, 1, 1, 0])
    loss = binary_cross_entropy(logits, targets)
    expected = F.binary_cross_entropy_with_logits(logits, targets.float())
    torch.testing.assert_close(loss.sum / loss.count, expected)
    error = squared_error(logits, targets)
    torch.testing.assert_close(error.sum / error.count, F.mse_loss(logits, targets.float()))
