"""Line charts as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bertsmith.report.elements.page import scrolled, text

WIDTH, HEIGHT = 880, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 12, 34
MOST_POINTS = 800  # a screen has no more columns; longer curves are thinned
FEW_POINTS = 40  # so few are marked on their curve
LONGEST_NAME = 19  # letters that fit next to the frame
COLORS = ("#3b78d8", "#d9682b", "#2f9e5b", "#b0409b", "#8a7a1f", "#1f9aa5", "#c23b48", "#6b6fd0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Named points (x, y); `dots` draws them apart instead of joined."""

    name: str
    points: tuple[tuple[float, float], ...]
    dots: bool = False


def chart(curves: Sequence[Curve], *, x_name: str) -> str:
    """Curves over one axis; points that are not finite are left out."""
    drawable = [
        Curve(name=curve.name, points=thinned(finite(curve.points)), dots=curve.dots)
        for curve in curves
    ]
    drawable = [curve for curve in drawable if curve.points]
    if not drawable:
        return "<p>nothing was recorded</p>"
    xs = [x for curve in drawable for x, _ in curve.points]
    ys = [y for curve in drawable for _, y in curve.points]
    across = Axis(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    up = Axis(min(ys), max(ys), HEIGHT - BOTTOM, TOP)
    parts = [*_grid(across, up), *_drawn(drawable, across, up)]
    parts.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, x_name, "middle"))
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    drawn = f'<svg {box} role="img" aria-label="{text(_spoken(drawable))}">{"".join(parts)}</svg>'
    return scrolled(drawn, "chart")


def finite(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """The points that can be drawn."""
    return tuple((x, y) for x, y in points if math.isfinite(x) and math.isfinite(y))


def thinned(
    points: tuple[tuple[float, float], ...], most: int = MOST_POINTS
) -> tuple[tuple[float, float], ...]:
    """At most about `most` points: means of equal runs, and the last point as it is."""
    if len(points) <= most:
        return points
    size = math.ceil(len(points) / most)
    runs = [points[start : start + size] for start in range(0, len(points) - 1, size)]
    means = [(sum(x for x, _ in r) / len(r), sum(y for _, y in r) / len(r)) for r in runs]
    return (*means, points[-1])


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers between two."""
    span = high - low
    if span <= 0:
        return [low]
    rough = span / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next((unit * factor for factor in (1, 2, 5) if unit * factor >= rough), unit * 10)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def shown(value: float) -> str:
    """A number as short as it can be read."""
    if value and (abs(value) < 1e-3 or abs(value) >= 1e7):
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


class Axis:
    """From values to places on the page."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        pad = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
        self.low, self.high = (low, high) if start < end and high > low else (low - pad, high + pad)
        self._start, self._scale = start, (end - start) / (self.high - self.low)

    def at(self, value: float) -> float:
        """The place of a value."""
        return round(self._start + (value - self.low) * self._scale, 1)


def _grid(across: Axis, up: Axis) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for value in ticks(up.low, up.high):
        y = up.at(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(label(LEFT - 8, y + 4, shown(value), "end"))
    for value in ticks(across.low, across.high, 6):
        x = across.at(value)
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(label(x, bottom + 15, shown(value), "middle"))
    size = f'width="{right - LEFT}" height="{bottom - TOP}"'
    parts.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" {size}/>')
    return parts


def _drawn(curves: Sequence[Curve], across: Axis, up: Axis) -> list[str]:
    parts = []
    for number, curve in enumerate(curves):
        color = COLORS[number % len(COLORS)]
        places = [(across.at(x), up.at(y)) for x, y in curve.points]
        if not curve.dots and len(places) > 1:
            joined = " ".join(f"{x},{y}" for x, y in places)
            parts.append(
                f'<polyline fill="none" stroke="{color}" stroke-width="1.6" points="{joined}"/>'
            )
        if curve.dots or len(places) <= FEW_POINTS:
            parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in places]
        y = TOP + 14 + 32 * number
        x = WIDTH - RIGHT + 12
        parts.append(f'<rect x="{x}" y="{y - 8}" width="10" height="4" fill="{color}"/>')
        parts.append(label(x + 16, y, _short(curve.name), "start"))
        parts.append(label(x + 16, y + 14, shown(curve.points[-1][1]), "start"))
    return parts


def label(x: float, y: float, words: str, anchor: str) -> str:
    """Words at a place."""
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}" text-anchor="{anchor}">{text(words)}</text>'


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _spoken(curves: Sequence[Curve]) -> str:
    ends = (f"{c.name} from {shown(c.points[0][1])} to {shown(c.points[-1][1])}" for c in curves)
    return "; ".join(ends)
