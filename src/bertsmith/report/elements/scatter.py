"""Two shares or numbers against each other, on a square: inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bertsmith.report.elements.chart import COLORS, Axis, label, shown, ticks
from bertsmith.report.elements.page import text

SIZE = 400
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 44


@dataclass(frozen=True, slots=True)
class Point:
    """A point, its radius, and its tooltip."""

    x: float
    y: float
    radius: float = 2.5
    words: str = ""


def square(points: Sequence[Point], *, low: float, high: float, names: tuple[str, str]) -> str:
    """Points with the line where both sides are equal; `names` are those of x and y."""
    drawable = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not drawable or not (math.isfinite(low) and math.isfinite(high) and low < high):
        return "<p>nothing was recorded</p>"
    across = Axis(low, high, LEFT, SIZE - RIGHT)
    # Pixels grow downwards; the same range on both sides keeps the diagonal a diagonal.
    up = Axis(-high, -low, TOP, SIZE - BOTTOM)
    parts = []
    for value in ticks(low, high):
        x, y = across.at(value), up.at(-value)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{SIZE - BOTTOM}"/>')
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{SIZE - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(label(x, SIZE - BOTTOM + 16, shown(value), "middle"))
        parts.append(label(LEFT - 7, y + 4, shown(value), "end"))
    ends = f'x1="{across.at(low)}" y1="{up.at(-low)}" x2="{across.at(high)}" y2="{up.at(-high)}"'
    parts.append(f'<line class="even" {ends}/>')
    parts += [
        f'<circle cx="{across.at(one.x)}" cy="{up.at(-one.y)}" r="{round(one.radius, 1)}" '
        f'fill="{COLORS[0]}" fill-opacity="0.55"><title>{text(one.words)}</title></circle>'
        for one in drawable
    ]
    middle = (LEFT + SIZE - RIGHT) / 2
    parts.append(label(middle, SIZE - 8, names[0], "middle"))
    turned = f"translate(14 {round((TOP + SIZE - BOTTOM) / 2)}) rotate(-90)"
    parts.append(f'<g transform="{turned}">{label(0, 0, names[1], "middle")}</g>')
    spoken = text(f"{names[1]} against {names[0]}, {len(drawable)} points")
    box = f'viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{spoken}"'
    return f'<div class="square"><svg {box}>{"".join(parts)}</svg></div>'
