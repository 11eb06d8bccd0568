from __future__ import annotations

import pytest
import torch
from rounded_products import Rounded
from torch import nn

from bertsmith.nn.matmul_backends import (
    BackendLinear,
    TorchMatmul,
    linear_together,
    use_products,
)


def layers(count: int = 3, width: int = 24) -> list[nn.Linear]:
    torch.manual_seed(0)
    return [nn.Linear(16, width) for _ in range(count)]


@pytest.mark.parametrize("rows", [0, 5, 40])  # fewer than weights have, and more
@pytest.mark.parametrize("products", [None, TorchMatmul(), Rounded()])
def test_results_and_gradients_are_those_of_the_layers_alone(rows, products) -> None:
    apart, joined = layers(), layers()
    for layer in (*apart, *joined) if products is not None else ():
        use_products(layer, products)
    ours = torch.randn(rows, 16, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    found = linear_together(ours, joined)
    wanted = torch.cat([layer(theirs) for layer in apart], dim=1)
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(found, wanted, **close)
    pull = torch.randn_like(found)
    found.backward(pull)
    wanted.backward(pull)
    torch.testing.assert_close(ours.grad, theirs.grad, **close)
    for one, other in zip(joined, apart, strict=True):
        torch.testing.assert_close(one.weight.grad, other.weight.grad, **close)
        torch.testing.assert_close(one.bias.grad, other.bias.grad, **close)


def test_a_layer_that_somebody_hooked_or_replaced_is_called() -> None:
    rows = torch.randn(40, 16)
    hooked = layers()
    seen = []
    hooked[1].register_forward_hook(lambda _, args, out: seen.append(out))
    linear_together(rows, hooked)
    assert len(seen) == 1

    class Doubled(nn.Linear):
        def forward(self, input):
            return 2 * super().forward(input)

    mixed = layers()
    mixed[2].__class__ = Doubled
    found = linear_together(rows, mixed)
    torch.testing.assert_close(found[:, 48:], mixed[2](rows))


def test_without_gradients_nothing_is_rounded() -> None:
    rounded = layers()
    for layer in rounded:
        use_products(layer, Rounded())
    assert isinstance(rounded[0], BackendLinear)
    rows = torch.randn(40, 16)
    with torch.no_grad():
        found = linear_together(rows, rounded)
    torch.testing.assert_close(found, linear_together(rows, layers()), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(16,), (3, 16), (4, 3, 16), (2, 0, 16)])
def test_a_switched_layer_takes_rows_of_any_leading_shape(shape) -> None:
    (plain,) = layers(1)
    (switched,) = layers(1)
    use_products(switched, TorchMatmul())
    rows = torch.randn(shape)
    found, wanted = switched(rows), plain(rows)
    assert found.shape == wanted.shape
    torch.testing.assert_close(found, wanted)
    pull = torch.randn_like(found)
    found.backward(pull)
    wanted.backward(pull)
    torch.testing.assert_close(switched.weight.grad, plain.weight.grad)
    torch.testing.assert_close(switched.bias.grad, plain.bias.grad)
