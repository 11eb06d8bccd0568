"""One step: gradients divided by counts over all micro-batches and ranks, guarded and clipped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bertsmith.errors import BertsmithError, ConfigError, DivergedError
from bertsmith.training.loop.guard import diagnosis
from bertsmith.training.loop.run import Run
from bertsmith.training.loop.state import step_seed
from bertsmith.training.loop.workload import StepGradients


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSums:
    """What a step adds up to over all ranks, and the gradient norm before clipping."""

    values: dict[str, float]  # sum:, count:, correct:, scored: of each part
    tokens: int
    norm: float


def compute_gradients(run: Run, batches: Sequence[Any], *, step: int, rate: float) -> StepSums:
    """Fill the gradients of the run's model with those of the whole batch, ready to step.

    Raises DivergedError, on all ranks together, if a loss or the norm is not finite.
    """
    own = _announced(run, batches)
    counted = run.execution.ranks.sum_counts(own)
    if not any(counted[f"count:{name}"] for name in run.workload.weights):
        raise _diverged(run, step, rate, 0.0, [])
    torch.manual_seed(step_seed(run.seed, step, run.execution.ranks.rank))
    gradients = StepGradients(
        run.workload,
        run.model,
        totals={name: counted[f"count:{name}"] for name in run.workload.weights},
        # Agreed before any pass: a pass may itself be collective.
        idle=_idle_passes(run, len(batches)),
        execution=run.execution,
    )
    run.workload.backward(batches, gradients)
    _check_counts(gradients, own)
    run.execution.ranks.sum_gradients(run.model)
    norm = gradient_norm(run.model)
    losses = [{name: float(value) for name, value in parts.items()} for parts in gradients.sums]
    values = _added(run, counted, losses, gradients.scores)
    if not (math.isfinite(norm) and all(math.isfinite(value) for value in values.values())):
        raise _diverged(run, step, rate, norm, losses)
    clip(run.model, norm, run.optimizer.clip)
    tokens = int(values.pop("tokens"))
    return StepSums(values=values, tokens=tokens, norm=norm)


def gradient_norm(model: nn.Module) -> float:
    """The norm of all gradients together."""
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(grads)
    return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


@torch.no_grad()
def clip(model: nn.Module, norm: float, limit: float | None) -> None:
    """Scale all gradients so that their norm is at most `limit`."""
    if limit is not None and norm > limit:
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        torch._foreach_mul_(grads, limit / norm)


def _announced(run: Run, batches: Sequence[Any]) -> dict[str, float]:
    """The predictions of each part and the tokens, over the micro-batches of this rank."""
    counts = {f"count:{name}": 0.0 for name in run.workload.weights}
    counts["tokens"] = 0.0
    for batch in batches:
        for name, count in run.workload.counts(batch).items():
            counts[f"count:{name}"] += count
        counts["tokens"] += run.workload.tokens(batch)
    return counts


def _check_counts(gradients: StepGradients, announced: Mapping[str, float]) -> None:
    """Refuse a loss over another number of predictions than was divided by."""
    for name, count in gradients.counts.items():
        expected = announced.get(f"count:{name}", 0.0)
        if count != expected:
            raise BertsmithError(
                f"the part {name!r} announced {expected:.0f} predictions and made {count}: "
                "gradients would be divided by the wrong number"
            )


def _idle_passes(run: Run, own: int) -> int:
    """How often to repeat the last micro-batch, times zero: sharded ranks must pass equally often.

    Called by all ranks together.
    """
    ranks = run.execution.ranks
    missing = ranks.passes(own) - own
    if missing and not own:
        raise ConfigError(
            f"rank {ranks.rank} of {ranks.world} got no text of this batch; "
            "give a global batch of at least as many texts as there are ranks"
        )
    return missing


def _added(
    run: Run,
    counted: Mapping[str, float],
    losses: Sequence[Mapping[str, float]],
    right: Mapping[str, float | Tensor],
) -> dict[str, float]:
    own = {
        f"{kind}:{name}": 0.0
        for name in run.workload.weights
        for kind in ("sum", "correct", "scored")
    }
    for parts in losses:
        for name, value in parts.items():
            own[f"sum:{name}"] += value
    for key, number in right.items():
        own[key] = own.get(key, 0.0) + float(number)
    return {**counted, **run.execution.ranks.sum_counts(own)}


def _diverged(
    run: Run, step: int, rate: float, norm: float, losses: Sequence[Mapping[str, float]]
) -> DivergedError:
    return DivergedError(
        diagnosis(
            run.model,
            step=step,
            rate=rate,
            norm=norm,
            losses=losses,
            examples=run.workload.examples(step),
        )
    )
