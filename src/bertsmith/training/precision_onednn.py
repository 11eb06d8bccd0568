"""fp32 products by oneDNN, where it is faster than the MKL that torch calls."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from bertsmith.hardware.probes.fp32_onednn import multiply
from bertsmith.nn.matmul_backends import TorchProducts


@dataclass(frozen=True, slots=True)
class OneDnnProducts(TorchProducts):
    """Towards the output and towards the input by oneDNN; towards the weight MKL is as fast."""

    name: str = "onednn-fp32"

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """(T, D), (F, D), (F,) -> (T, F)."""
        if not rows.numel() or not weight.numel():
            return TorchProducts.forward(self, rows, weight, bias)
        return multiply(rows, weight, bias)

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        """(T, F), (F, D) -> (T, D)."""
        if not gradient.numel() or not weight.numel():
            return TorchProducts.rows_gradient(self, gradient, weight)
        return multiply(gradient, weight.t())
