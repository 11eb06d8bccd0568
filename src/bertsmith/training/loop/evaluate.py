"""Evaluation on held-out data: losses, perplexities and accuracies, or the metrics of a task."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import nn

from bertsmith.config import Settings
from bertsmith.files.strict_json import json_values
from bertsmith.nn.modes import evaluating
from bertsmith.training.execution.execution import Execution
from bertsmith.training.loop.workload import Workload


class EvaluationSettings(Settings):
    """How much text is held out, and every how many steps it is read."""

    held_out: Annotated[float, Field(ge=0, lt=1)] = 0.01
    every: Annotated[int, Field(gt=0)] | None = 1_000  # None: at the end only


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Losses and metrics of held-out data."""

    losses: dict[str, float]
    accuracy: dict[str, float]
    counts: dict[str, int]
    total: float  # the weighted sum that training minimizes
    figures: dict[str, float] = field(default_factory=dict)  # of a task, the main one first

    @property
    def perplexity(self) -> dict[str, float]:
        """exp of each loss; infinite where that is more than a float holds."""
        return {name: _exp(loss) for name, loss in self.losses.items()}

    def to_json(self) -> dict[str, Any]:
        """Values of JSON: what is not finite is null."""
        record = {
            "losses": self.losses,
            "perplexity": self.perplexity,
            "accuracy": self.accuracy,
            "counts": self.counts,
            "total": self.total,
            "figures": self.figures,
        }
        return dict(json_values(record))

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Evaluation:
        """What `to_json` gave; null is nan."""

        def number(value: float | None) -> float:
            return math.nan if value is None else value

        return cls(
            losses={name: number(loss) for name, loss in values["losses"].items()},
            accuracy=values["accuracy"],
            counts=values["counts"],
            total=number(values["total"]),
            figures={name: number(figure) for name, figure in values["figures"].items()},
        )


@torch.no_grad()
def evaluate_losses(
    model: nn.Module, workload: Workload, execution: Execution
) -> Evaluation | None:
    """Losses over the held-out batches, each part by its own count; None when there are none."""
    sums: dict[str, float] = {}

    def add(key: str, value: float) -> None:
        sums[key] = sums.get(key, 0.0) + value

    with evaluating(model), execution.ranks.whole(model):
        for batch in workload.held_out():
            with execution.precision.context():
                parts, scores = workload.loss(model, batch.to(execution.device))
            for name, part in parts.items():
                add(f"sum:{name}", float(part.sum))
                add(f"count:{name}", part.count)
            for name, score in scores.items():
                add(f"correct:{name}", float(score.correct))
                add(f"scored:{name}", score.count)
    # Every rank must name the same parts: those of the loss, even where a rank has no text.
    for name in workload.weights:
        for kind in ("sum", "count", "correct", "scored"):
            sums.setdefault(f"{kind}:{name}", 0.0)
    return _evaluation(execution.ranks.sum_counts(dict(sorted(sums.items()))), workload)


def _evaluation(sums: dict[str, float], workload: Workload) -> Evaluation | None:
    counts = {n: int(sums[f"count:{n}"]) for n in workload.weights if sums[f"count:{n}"]}
    if not counts:
        return None
    losses = {name: sums[f"sum:{name}"] / count for name, count in counts.items()}
    accuracy = {
        name: sums[f"correct:{name}"] / sums[f"scored:{name}"]
        for name in counts
        if sums[f"scored:{name}"]
    }
    total = sum(workload.weights[name] * loss for name, loss in losses.items())
    return Evaluation(losses=losses, accuracy=accuracy, counts=counts, total=total)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
