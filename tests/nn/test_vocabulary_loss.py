from __future__ import annotations

import pytest
import torch
from rounded_products import Rounded
from torch import Tensor
from torch.nn import functional as F

from bertsmith.nn import matmul_backends
from bertsmith.nn.matmul_backends import mark
from bertsmith.nn.vocabulary_loss import vocabulary_loss

ROW = 4  # bytes of a logit


def material(
    count: int = 90, width: int = 24, words: int = 300, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(3)
    rows = torch.randn(count, width, generator=rng, dtype=dtype)
    weight = torch.randn(words, width, generator=rng, dtype=dtype)
    bias = torch.randn(words, generator=rng, dtype=dtype)
    targets = torch.randint(0, words, (count,), generator=rng)
    return rows.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), targets


def relative(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize("rows_a_chunk", [1, 7, 30, 90, 1000])
def test_loss_and_gradients_are_those_of_plain_cross_entropy(rows_a_chunk: int) -> None:
    rows, weight, bias, targets = material()
    loss, correct = vocabulary_loss(
        rows, weight, bias, targets, chunk_bytes=rows_a_chunk * 300 * ROW
    )
    found = torch.autograd.grad(0.25 * loss.sum, (rows, weight, bias))
    logits = F.linear(rows, weight, bias)
    plain = F.cross_entropy(logits, targets, reduction="sum")
    expected = torch.autograd.grad(0.25 * plain, (rows, weight, bias))
    assert loss.count == 90
    assert loss.sum.item() == pytest.approx(plain.item(), rel=1e-6)
    assert int(correct) == int((logits.argmax(1) == targets).sum())
    for one, other in zip(found, expected, strict=True):
        assert relative(one, other) < 1e-6


@pytest.mark.parametrize("smoothing", [0.1, 0.7, 1.0])
def test_smoothed_labels_are_those_of_plain_cross_entropy(smoothing: float) -> None:
    for dtype, most in ((torch.float32, 2e-6), (torch.float64, 1e-13)):
        rows, weight, bias, targets = material(dtype=dtype)
        loss, _ = vocabulary_loss(
            rows, weight, bias, targets, smoothing=smoothing, chunk_bytes=7 * 300 * ROW
        )
        found = torch.autograd.grad(0.25 * loss.sum, (rows, weight, bias))
        plain = F.cross_entropy(
            F.linear(rows, weight, bias), targets, reduction="sum", label_smoothing=smoothing
        )
        expected = torch.autograd.grad(0.25 * plain, (rows, weight, bias))
        assert loss.sum.item() == pytest.approx(plain.item(), rel=most)
        for one, other in zip(found, expected, strict=True):
            assert relative(one, other) < most


def test_wide_vocabularies_go_through_blocks_and_give_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(matmul_backends, "BLOCK", 32)
    test_loss_and_gradients_are_those_of_plain_cross_entropy(30)


def test_double_precision_is_exact_to_its_last_digits() -> None:
    rows, weight, bias, targets = material(dtype=torch.float64)
    loss, _ = vocabulary_loss(rows, weight, bias, targets, chunk_bytes=20 * 300 * 8)
    found = torch.autograd.grad(loss.sum, (rows, weight, bias))
    plain = F.cross_entropy(F.linear(rows, weight, bias), targets, reduction="sum")
    expected = torch.autograd.grad(plain, (rows, weight, bias))
    for one, other in zip(found, expected, strict=True):
        assert relative(one, other) < 1e-14


def test_a_hopeless_target_costs_its_distance_and_not_infinity() -> None:
    weight = torch.tensor([[200.0], [0.0]])
    loss, correct = vocabulary_loss(
        torch.ones(1, 1), weight, torch.zeros(2), torch.ones(1, dtype=torch.long)
    )
    assert loss.sum.item() == 200.0
    assert int(correct) == 0


def test_no_rows_give_zero_and_zero_gradients() -> None:
    rows, weight, bias, targets = material(count=0)
    loss, correct = vocabulary_loss(rows, weight, bias, targets)
    loss.sum.backward()
    assert loss.sum.item() == 0.0
    assert (loss.count, int(correct)) == (0, 0)
    assert rows.grad is not None
    assert weight.grad is not None
    assert not weight.grad.any()


def test_frozen_inputs_get_no_gradient() -> None:
    rows, weight, bias, targets = material()
    loss, _ = vocabulary_loss(rows, weight.detach(), bias.detach(), targets)
    loss.sum.backward()
    assert rows.grad is not None
    assert weight.grad is None


def test_the_gradient_of_the_weight_is_handed_over_uncopied_and_once() -> None:
    rows, weight, bias, targets = material()
    loss, _ = vocabulary_loss(rows, weight, bias, targets)
    made = loss.sum.grad_fn.made.weight.data_ptr()  # type: ignore[union-attr]
    loss.sum.backward(retain_graph=True)
    assert weight.grad is not None
    assert weight.grad.data_ptr() == made
    with pytest.raises(RuntimeError, match="only once"):
        loss.sum.backward()


def test_without_gradients_ties_go_to_the_first_token() -> None:
    rows, weight = torch.ones(3, 2), torch.zeros(5, 2)
    with torch.no_grad():
        _, correct = vocabulary_loss(rows, weight, torch.zeros(5), torch.tensor([0, 1, 2]))
    assert int(correct) == 1


def test_marked_weights_train_in_bf16_and_are_scored_in_fp32() -> None:
    rows, weight, bias, targets = material(count=400, width=64)
    plain, _ = vocabulary_loss(rows, weight, bias, targets)
    expected = torch.autograd.grad(plain.sum, (rows, weight, bias))
    mark(weight, Rounded())
    loss, _ = vocabulary_loss(rows, weight, bias, targets, chunk_bytes=100 * 300 * ROW)
    found = torch.autograd.grad(loss.sum, (rows, weight, bias))
    assert 0 < relative(loss.sum.detach(), plain.sum.detach()) < 2e-3
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert relative(one, other) < 2e-2
    with torch.no_grad():
        scored, _ = vocabulary_loss(rows, weight, bias, targets)
    assert scored.sum.item() == pytest.approx(plain.sum.item(), rel=1e-6)
