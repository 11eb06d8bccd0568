"""Log lines over several steps: sums that survive a resume, and the figures made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertsmith.training.step import StepSums


def add_step(window: dict[str, float], sums: StepSums) -> None:
    """Add a step to the unfinished line."""
    for name, value in {**sums.values, "tokens": sums.tokens, "steps": 1}.items():
        window[name] = window.get(name, 0.0) + value
    window["norm"] = max(window.get("norm", 0.0), sums.norm)


def figures(sums: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """The mean loss and the accuracy of each part that predicted anything."""
    losses, accuracy = {}, {}
    for key, count in sums.items():
        kind, _, name = key.partition(":")
        if kind == "count" and count:
            losses[name] = sums[f"sum:{name}"] / count
        if kind == "scored" and count:
            accuracy[name] = sums[f"correct:{name}"] / count
    return losses, accuracy


def line(window: Mapping[str, float], *, rate: float) -> dict[str, Any]:
    """What a finished line says."""
    losses, accuracy = figures(window)
    return {
        "losses": losses,
        "accuracy": accuracy,
        "rate": rate,
        "norm": window.get("norm", 0.0),
        "line_tokens": int(window.get("tokens", 0)),
        "line_steps": int(window.get("steps", 0)),
    }
