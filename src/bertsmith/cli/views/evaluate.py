"""Figures of labeled rows as lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def proof_lines(told: Mapping[str, Any], *, most: int) -> list[str]:
    """What `Proof.to_json` says: figures, then a table of classes."""
    what = told.get("model") or told.get("answers")
    counted = f"{told['rows']:,} rows"
    lines = [f"{what} on {told.get('file')}: {counted}"]
    lines += figure_lines(told["figures"], interval=told.get("interval"), task=told["task"])
    if told.get("rules"):
        lines.append(f"  scored by the rules of {told['rules']}")
    lines += class_lines(told.get("classes") or (), most=most)
    cost = told.get("truncation")
    if isinstance(cost, Mapping) and cost.get("rows_cut"):
        lines.append(f"  longer than the model reads: {cost['rows_cut']:,} of {counted}")
    return lines


def figure_lines(
    figures: Mapping[str, float | None], *, interval: Mapping[str, Any] | None = None, task: str
) -> list[str]:
    """One line a figure, the main one first, with its interval."""
    width = max(map(len, figures), default=0) + 2
    lines = []
    for place, (name, value) in enumerate(figures.items()):
        line = f"  {name:<{width}}{shown(value, task=task)}"
        if place == 0 and interval and interval.get("low") is not None:
            low, high = (shown(interval[side], task=task) for side in ("low", "high"))
            line += f"  (95 % of draws: {low} to {high})"
        lines.append(line)
    return lines


def shown(value: float | None, *, task: str) -> str:
    """A figure as the official programs print it: times 100, or as a fraction."""
    from bertsmith.tasks.kinds import task_kind

    if value is None:
        return "does not exist here"
    return f"{100 * value:.3f}" if task_kind(task).percent else f"{value:.4f}"


def class_lines(classes: Sequence[Mapping[str, Any]], *, most: int) -> list[str]:
    """Precision, recall, F1 and rows of each class."""
    if not classes:
        return []
    names = [str(row.get("label", row.get("type", ""))) for row in classes[:most]]
    width = max(10, *(len(name) for name in names)) + 2
    lines = [f"  {'':<{width}}{'precision':>10}{'recall':>10}{'f1':>10}{'rows':>10}"]
    for name, row in zip(names, classes, strict=False):
        parts = "".join(f"{row.get(key) or 0.0:>10.4f}" for key in ("precision", "recall", "f1"))
        lines.append(f"  {name:<{width}}{parts}{row.get('support', row.get('rows', 0)):>10,}")
    more = len(classes) - most
    return [*lines, f"  and {more:,} more classes"] if more > 0 else lines
