"""Products of bf16 operands that every machine can run."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


class Rounded:
    """bf16 operands multiplied in fp32: no bf16 instruction runs, so no machine can trap."""

    name = "rounded"
    dtype = torch.bfloat16
    output = torch.float32

    def forward(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return F.linear(rows.float(), weight.float(), bias)

    def rows_gradient(self, gradient: Tensor, weight: Tensor) -> Tensor:
        return gradient.float() @ weight.float()

    def weight_gradient(self, gradient: Tensor, rows: Tensor, into: Tensor | None = None) -> Tensor:
        found = gradient.float().t() @ rows.float()
        return found if into is None else into.add_(found)
