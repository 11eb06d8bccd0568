"""Muon (torch's) with an orthogonalization that is safe and deterministic on every CPU.

torch.optim.Muon multiplies in bf16, which kills the process on machines that advertise AMX and trap
it, and which is slower than fp32 on CPUs without it. On a CPU the same iteration runs in fp32 here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_QUINTIC = (3.4445, -4.7750, 2.0315)  # Jordan 2024: steepest at zero, ends in 0.7 to 1.2


class Muon(torch.optim.Muon):
    """Momentum made orthogonal, for matrices; its step is as long as AdamW's (arXiv:2502.16982)."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step for every matrix that has a gradient."""
        if any(p.device.type != "cpu" for group in self.param_groups for p in group["params"]):
            return super().step(closure)  # type: ignore[no-any-return, no-untyped-call]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._step_matrix(p, p.grad, group)
        return loss

    def _step_matrix(self, p: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        rate, momentum = group["lr"], group["momentum"]
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(grad)
        buffer = state["momentum_buffer"]
        buffer.lerp_(grad, 1.0 - momentum)
        update = orthogonal(grad.lerp(buffer, momentum) if group["nesterov"] else buffer)
        p.mul_(1.0 - rate * group["weight_decay"])
        p.add_(update, alpha=-rate * 0.2 * math.sqrt(max(p.shape)))


def orthogonal(matrix: Tensor, *, steps: int = 5, eps: float = 1e-7) -> Tensor:
    """Nearly the orthogonal factor of a matrix, by Newton-Schulz steps: (A, B) -> (A, B)."""
    a, b, c = _QUINTIC
    flat = matrix.T if matrix.size(0) > matrix.size(1) else matrix
    x = flat / flat.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    update: Tensor = x.T if matrix.size(0) > matrix.size(1) else x
    return update
