"""MKL's bf16 products with fp32 results, which drive AMX where torch's own path traps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bertsmith.hardware.probes.mkl_bf16 import load

# From the CBLAS standard: matrices by rows, and whether an operand is read transposed.
_BY_ROWS, _PLAIN, _TRANSPOSED = 101, 111, 112


class MklProducts:
    """Products of bf16 operands; sums and results are fp32."""

    name = "mkl-bf16"
    dtype = torch.bfloat16
    output = torch.float32

    def __init__(self) -> None:
        """Raises HardwareError where torch comes without MKL; whether it is right, probes say."""
        self._multiply: Callable[..., None] = load()

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(T, D), (F, D), (F,) -> (T, F)."""
        (count, inner), width = rows.shape, weight.shape[0]
        if bias is None:
            result = torch.empty(count, width)
        else:
            result = bias.detach().float().expand(count, width).contiguous()
        sizes = (count, width, inner)
        return self._product(rows, weight, result, sizes, right=_TRANSPOSED, add=bias is not None)

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """(T, F), (F, D) -> (T, D)."""
        (count, inner), width = gradient.shape, weight.shape[1]
        return self._product(gradient, weight, torch.empty(count, width), (count, width, inner))

    def weight_gradient(self, gradient: Tensor, rows: Tensor, into: Tensor | None = None) -> Tensor:
        """(T, F), (T, D) -> (F, D), added to `into` if given."""
        (inner, count), width = gradient.shape, rows.shape[1]
        result = torch.empty(count, width) if into is None else into
        sizes = (count, width, inner)
        return self._product(gradient, rows, result, sizes, left=_TRANSPOSED, add=into is not None)

    def _product(
        self,
        a: Tensor,
        b: Tensor,
        result: Tensor,
        sizes: tuple[int, int, int],
        *,
        left: int = _PLAIN,
        right: int = _PLAIN,
        add: bool = False,
    ) -> Tensor:
        """result = a b, each as stored or transposed, plus what `result` holds if `add`."""
        if not result.numel():
            return result
        if not sizes[2]:
            return result if add else result.zero_()
        a, b = a.contiguous(), b.contiguous()
        self._multiply(
            *(_BY_ROWS, left, right, *sizes),
            *(1.0, a.data_ptr(), a.shape[1], b.data_ptr(), b.shape[1]),
            *(float(add), result.data_ptr(), result.shape[1]),
        )
        return result
