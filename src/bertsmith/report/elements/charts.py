"""Charts as inline SVG: curves, histograms, and two values against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bertsmith.report.elements.page import element, paragraph

WIDTH = 880
MOST_POINTS = 800  # a screen has no more columns; longer curves are thinned
FEW_POINTS = 40  # so few are marked on their curve
LONGEST_NAME = 19  # letters that fit next to the frame
COLORS = ("#3b78d8", "#d9682b", "#2f9e5b", "#b0409b", "#8a7a1f", "#1f9aa5", "#c23b48", "#6b6fd0")

Bin = tuple[float, float, float]
"""From, to, how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Named points (x, y); `dots` draws them apart instead of joined."""

    name: str
    points: tuple[tuple[float, float], ...]
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A point, its radius, and its tooltip."""

    x: float
    y: float
    radius: float = 2.5
    words: str = ""


class ChartFrame:
    """The rectangle that a chart is drawn in: from values to places, and its ticks."""

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        *,
        size: tuple[int, int] = (WIDTH, 300),
        margins: tuple[int, int] = (64, 150),
        tick_counts: tuple[int, int] = (6, 5),
    ) -> None:
        self.width, self.height = size
        self.left, self.right = margins[0], self.width - margins[1]
        self.top, self.bottom = 12, self.height - 36
        self._x, self._y = _wider(*x_range), _wider(*y_range)
        self.x_ticks = [(self.x(v), shown(v)) for v in ticks(*self._x, tick_counts[0])]
        self.y_ticks = [(self.y(v), shown(v)) for v in ticks(*self._y, tick_counts[1])]

    def x(self, value: float) -> float:
        """The place of a value from left to right."""
        low, high = self._x
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """The place of a value from the top, where pixels start."""
        low, high = self._y
        return round(self.bottom - (value - low) / (high - low) * (self.bottom - self.top), 1)


def chart(curves: Sequence[Curve], *, x_name: str) -> Markup:
    """Curves over one axis; points that are not finite are left out."""
    drawable = [(curve, thinned(finite(curve.points))) for curve in curves]
    drawable = [(curve, points) for curve, points in drawable if points]
    if not drawable:
        return _nothing()
    xs = [x for _, points in drawable for x, _ in points]
    ys = [y for _, points in drawable for _, y in points]
    pad = (max(ys) - min(ys)) * 0.04
    frame = ChartFrame((min(xs), max(xs)), (min(ys) - pad, max(ys) + pad))
    drawn = [
        (
            [(frame.x(x), frame.y(y)) for x, y in points],
            COLORS[number % len(COLORS)],
            not curve.dots and len(points) > 1,
            curve.dots or len(points) <= FEW_POINTS,
            (_short(curve.name), shown(points[-1][1])),
        )
        for number, (curve, points) in enumerate(drawable)
    ]
    ends = [f"{c.name} from {shown(p[0][1])} to {shown(p[-1][1])}" for c, p in drawable]
    return element("charts", "chart", frame, (x_name, ""), "; ".join(ends), drawn)


def histogram(bins: Sequence[Bin], *, x_name: str, low: float, high: float) -> Markup:
    """Bars over a range; bins may leave gaps, which are empty."""
    drawable = [one for one in bins if all(map(math.isfinite, one))]
    most = max((count for _, _, count in drawable), default=0)
    if not most or not low < high:
        return _nothing()
    frame = ChartFrame(
        (low, high), (0, most), size=(WIDTH, 190), margins=(64, 12), tick_counts=(8, 3)
    )
    bars = []
    for start, end, count in drawable:
        left, top = round(frame.x(start) + 1, 1), frame.y(count)
        width = max(1.0, round(frame.x(end) - 1 - left, 1))
        words = f"{shown(start)} to {shown(end)}: {count:,.0f}"
        bars.append((left, top, width, round(frame.bottom - top, 1), words))
    spoken = f"{x_name}, {len(drawable)} ranges"
    return element("charts", "histogram", frame, (x_name, ""), spoken, bars, COLORS[0])


def square(points: Sequence[Point], *, low: float, high: float, names: tuple[str, str]) -> Markup:
    """Points with the line where both sides are equal; `names` are those of x and y."""
    drawable = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if not drawable or not (math.isfinite(low) and math.isfinite(high) and low < high):
        return _nothing()
    frame = ChartFrame(
        (low, high), (low, high), size=(400, 400), margins=(52, 14), tick_counts=(5, 5)
    )
    drawn = [(frame.x(p.x), frame.y(p.y), round(p.radius, 1), p.words) for p in drawable]
    spoken = f"{names[1]} against {names[0]}, {len(drawable)} points"
    return element("charts", "square", frame, names, spoken, drawn, COLORS[0])


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


def _wider(low: float, high: float) -> tuple[float, float]:
    """A range that is not empty."""
    pad = 0.0 if low < high else abs(high) * 0.1 or 1.0
    return low - pad, high + pad


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _nothing() -> Markup:
    return paragraph("nothing was recorded")
