"""LAMB (You et al. 2019, arXiv:1904.00962): Adam with steps as long as the weights they change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer


class Lamb(Optimizer):
    """LAMB with the ratio |w| / |update| of algorithm 2; groups with `trust` off take Adam's step.

    As in the paper's experiments, the ratio is 1 where either norm is 0, and bias and norm
    parameters belong into a group with `trust` off and no decay.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        *,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        trust: bool = True,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "trust": trust,
        }
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step for every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            # On a GPU few large calls win; on a CPU one tensor at a time stays in the cache.
            together = bool(params) and params[0].device.type != "cpu"
            for some in [params] if together else [[p] for p in params]:
                self._step_some(group, some)
        return loss

    def _step_some(self, group: dict[str, Any], params: list[Tensor]) -> None:
        first, second = group["betas"]
        grads = [p.grad for p in params if p.grad is not None]
        means, squares, steps = self._states(params)
        torch._foreach_add_(steps, 1.0)
        torch._foreach_lerp_(means, grads, 1.0 - first)
        torch._foreach_mul_(squares, second)
        torch._foreach_addcmul_(squares, grads, grads, 1.0 - second)
        # All parameters of a group have seen the same number of steps unless some were unused.
        counts = [float(step) for step in steps]
        roots = list(torch._foreach_sqrt(squares))
        torch._foreach_div_(roots, [math.sqrt(1.0 - second**count) for count in counts])
        torch._foreach_add_(roots, group["eps"])
        updates = list(torch._foreach_div(means, [1.0 - first**count for count in counts]))
        torch._foreach_div_(updates, roots)
        if group["weight_decay"]:
            torch._foreach_add_(updates, params, alpha=group["weight_decay"])
        if group["trust"]:
            torch._foreach_mul_(updates, _ratios(params, updates))
        torch._foreach_add_(params, updates, alpha=-group["lr"])

    def _states(self, params: list[Tensor]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        for p in params:
            if not self.state[p]:
                self.state[p]["step"] = torch.zeros((), dtype=torch.float32)
                self.state[p]["exp_avg"] = torch.zeros_like(p)
                self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
        states = [self.state[p] for p in params]
        return (
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
        )


def _ratios(params: list[Tensor], updates: list[Tensor]) -> list[Tensor]:
    """|w| / |update| of each tensor, 1 where either is 0; no number leaves the device."""
    ratios = []
    for weight, update in zip(
        torch._foreach_norm(params), torch._foreach_norm(updates), strict=True
    ):
        usable = (weight > 0) & (update > 0)
        ratios.append(torch.where(usable, weight / update, torch.ones_like(weight)))
    return ratios
