"""Metrics of labeled rows as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def proof_lines(record: Mapping[str, Any], *, most: int) -> list[str]:
    """The lines of a `Proof.to_json`: metrics, then a table of classes."""
    what = record.get("model") or record.get("answers")
    counted = f"{record['rows']:,} rows"
    lines = [f"{what} on {record.get('file')}: {counted}"]
    lines += figure_lines(record["figures"], interval=record.get("interval"), task=record["task"])
    if record.get("rules"):
        lines.append(f"  scored by the rules of {record['rules']}")
    lines += class_lines(record.get("classes") or (), most=most)
    cost = record.get("truncation")
    if isinstance(cost, Mapping) and cost.get("rows_cut"):
        lines.append(f"  truncated: {cost['rows_cut']:,} of {counted}")
    return lines


def figure_lines(
    figures: Mapping[str, float | None], *, interval: Mapping[str, Any] | None = None, task: str
) -> list[str]:
    """One line per metric, the main one first, with its interval."""
    width = max(map(len, figures), default=0) + 2
    lines = []
    for place, (name, value) in enumerate(figures.items()):
        line = f"  {name:<{width}}{shown(value, task=task)}"
        if place == 0 and interval and interval.get("low") is not None:
            low, high = (shown(interval[side], task=task) for side in ("low", "high"))
            line += f"  (95 % interval: {low} to {high})"
        lines.append(line)
    return lines


def shown(value: float | None, *, task: str) -> str:
    """A figure as the official programs print it: times 100, or as a fraction."""
    from bertsmith.tasks.kinds import task_kind

    if value is None:
        return "undefined"
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
