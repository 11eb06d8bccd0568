"""Linear layers that train through other products than torch's; weights and gradients stay fp32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_MARK = "bertsmith_products"
BLOCK = 1024  # columns; 1.5 times as fast as all 30,522 at once with 205 rows of 256 (AMD Zen 4)


class MatmulBackend(Protocol):
    """The three products of a linear layer, for operands of one number format."""

    @property
    def name(self) -> str:
        """What stands in reports and checkpoints."""

    @property
    def dtype(self) -> torch.dtype:
        """The format of the operands; sums are at least fp32."""

    @property
    def output(self) -> torch.dtype:
        """The format of the results."""

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(T, D), (F, D), (F,) -> (T, F)."""

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """(T, F), (F, D) -> (T, D)."""

    def weight_gradient(self, gradient: Tensor, rows: Tensor, into: Tensor | None = None) -> Tensor:
        """(T, F), (T, D) -> (F, D), added to `into` if given."""


@dataclass(frozen=True, slots=True)
class TorchMatmul:
    """Torch's own products, in any format that torch multiplies; sums inside are fp32 or better."""

    dtype: torch.dtype = torch.float32
    name: str = "torch"

    @property
    def output(self) -> torch.dtype:
        """That of the operands: torch rounds each finished sum to it."""
        return self.dtype

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(T, D), (F, D), (F,) -> (T, F)."""
        bias = None if bias is None else bias.to(self.dtype)
        if not self._in_blocks(rows, weight.shape[0]):
            return F.linear(rows, weight, bias)
        found = rows.new_empty(rows.shape[0], weight.shape[0])
        for part in _blocks(weight.shape[0]):
            torch.mm(rows, weight[part].t(), out=found[:, part])
        return found if bias is None else found.add_(bias)

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """(T, F), (F, D) -> (T, D)."""
        return gradient @ weight

    def weight_gradient(self, gradient: Tensor, rows: Tensor, into: Tensor | None = None) -> Tensor:
        """(T, F), (T, D) -> (F, D), added to `into` if given."""
        if not self._in_blocks(rows, gradient.shape[1]):
            found = gradient.t() @ rows
            return found if into is None else into.add_(found)
        old = 0.0 if into is None else 1.0  # 0: what empty memory holds is not read
        into = rows.new_empty(gradient.shape[1], rows.shape[1]) if into is None else into
        for part in _blocks(gradient.shape[1]):
            into[part].addmm_(gradient[:, part].t(), rows, beta=old)
        return into

    def _in_blocks(self, rows: Tensor, width: int) -> bool:
        """Whether MKL, which is slow on very wide products, gets them in narrower blocks."""
        narrow = width <= 4 * BLOCK or rows.shape[1] == 1
        return self.dtype == torch.float32 and rows.device.type == "cpu" and not narrow


def _blocks(width: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, width)) for start in range(0, width, BLOCK)]


class BackendLinear(nn.Linear):
    """A linear layer that trains through `products`; without gradients nothing is rounded.

    Operands are cast anew in each pass. A cache of cast weights would save a thousandth of the
    time and go stale in silence: fused optimizers do not raise a tensor's version.
    """

    products: MatmulBackend
    narrow: bool  # the result stays in the format of the products, for what reads it next

    def forward(self, input: Tensor) -> Tensor:
        """(T, D) -> (T, F); other leading dimensions stay, as in torch."""
        if input.dim() == 2:
            return self.multiplied(input, self.weight, self.bias)
        found = self.multiplied(input.reshape(-1, input.shape[-1]), self.weight, self.bias)
        return found.view(*input.shape[:-1], self.out_features)

    def multiplied(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Rows by any weight the way this layer does it: (T, D), (F, D), (F,) -> (T, F)."""
        if torch.is_grad_enabled():
            found: Tensor = _Linear.apply(  # type: ignore[no-untyped-call]
                rows, weight, bias, self.products, self.narrow
            )
            return found
        if self.products.dtype == weight.dtype == rows.dtype:
            return self.products.forward(rows, weight, bias)
        return F.linear(rows, weight, bias)


def use_products(layer: nn.Linear, products: MatmulBackend, *, narrow: bool = False) -> None:
    """Make a layer train through `products`; object, names and parameters stay what they are."""
    layer.__class__ = BackendLinear
    switched: Any = layer
    switched.products, switched.narrow = products, narrow


def linear_together(rows: Tensor, layers: Sequence[nn.Linear]) -> Tensor:
    """What layers make of the same rows, side by side: (T, D) -> (T, sum of F).

    All of them have a bias, or none.

    One wide product is faster than several narrow ones (1.7 times at 384 by 384 on AMD Zen 4) and
    casts its rows once. With fewer rows than weights have, joining the results is cheaper.
    """
    first = layers[0]
    alike = all(is_plain(layer) and type(layer) is type(first) for layer in layers)
    if not alike or rows.shape[0] < first.out_features:
        return torch.cat([layer(rows) for layer in layers], dim=1)
    weight = torch.cat([layer.weight for layer in layers])
    bias = None if first.bias is None else torch.cat([layer.bias for layer in layers])
    if isinstance(first, BackendLinear):
        return first.multiplied(rows, weight, bias)
    return F.linear(rows, weight, bias)


def is_plain(layer: nn.Linear) -> bool:
    """Whether calling a layer does no more than its product: nobody has hooked or replaced it."""
    hooked = layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks
    return type(layer) in (nn.Linear, BackendLinear) and not hooked


def mark(weight: Tensor, products: MatmulBackend) -> None:
    """Have the vocabulary loss multiply by this weight through `products`."""
    setattr(weight, _MARK, products)


def products_of(weight: Tensor) -> MatmulBackend | None:
    """The products that a weight was marked with."""
    found: MatmulBackend | None = getattr(weight, _MARK, None)
    return found


class _Linear(torch.autograd.Function):
    """x W^T + b with operands cast to the format of the products."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        products: MatmulBackend,
        narrow: bool,
    ) -> Tensor:
        cast_rows, cast_weight = rows.to(products.dtype), weight.to(products.dtype)
        ctx.save_for_backward(cast_rows, cast_weight)
        ctx.products, ctx.dtypes = products, (rows.dtype, weight.dtype)
        found = products.forward(cast_rows, cast_weight, bias)
        return found if narrow else found.to(weight.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        products: MatmulBackend = ctx.products
        rows_type, weight_type = ctx.dtypes
        cast = gradient.to(products.dtype)
        found: list[Tensor | None] = [None, None, None]
        if ctx.needs_input_grad[0]:
            found[0] = products.rows_gradient(cast, weight).to(rows_type)
        if ctx.needs_input_grad[1]:
            found[1] = products.weight_gradient(cast, rows).to(weight_type)
        if ctx.needs_input_grad[2]:
            found[2] = gradient.sum(0, dtype=weight_type)
        return (*found, None, None)
