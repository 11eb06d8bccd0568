"""How often values fall into ranges: inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bertsmith.report.elements.chart import COLORS, Axis, label, shown, ticks
from bertsmith.report.elements.page import scrolled, text

WIDTH, HEIGHT = 880, 190
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 10, 36

Bin = tuple[float, float, float]
"""From, to, how many."""


def histogram(bins: Sequence[Bin], *, x_name: str, low: float, high: float) -> str:
    """Bars over a range; bins may leave gaps, which are empty."""
    drawable = [one for one in bins if all(map(math.isfinite, one))]
    most = max((count for _, _, count in drawable), default=0)
    if not most or not low < high:
        return "<p>nothing was recorded</p>"
    across = Axis(low, high, LEFT, WIDTH - RIGHT)
    up = Axis(-most, 0, TOP, HEIGHT - BOTTOM)
    parts = []
    for value in ticks(0, most, 3):
        y = up.at(-value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(label(LEFT - 8, y + 4, shown(value), "end"))
    parts += [
        label(across.at(value), HEIGHT - BOTTOM + 15, shown(value), "middle")
        for value in ticks(low, high, 8)
    ]
    for start, end, count in drawable:
        left, right, top = across.at(start) + 1, across.at(end) - 1, up.at(-count)
        size = f'width="{max(1.0, round(right - left, 1))}" height="{round(up.at(0) - top, 1)}"'
        words = text(f"{shown(start)} to {shown(end)}: {count:,.0f}")
        parts.append(
            f'<rect x="{round(left, 1)}" y="{top}" {size} fill="{COLORS[0]}" fill-opacity="0.75">'
            f"<title>{words}</title></rect>"
        )
    parts.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, x_name, "middle"))
    spoken = text(f"{x_name}, {len(drawable)} ranges")
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{spoken}"'
    return scrolled(f"<svg {box}>{''.join(parts)}</svg>", "chart")
