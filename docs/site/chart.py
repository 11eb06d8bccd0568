"""Charts of the benchmark pages as SVG, from docs/benchmarks/charts.toml.

The site's charts are drawn when it is built, inside the page, so that they follow its light and
dark scheme. The chart of the README is a file, docs/images/encoding-speed.svg: run this script to
draw it again.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
SOURCE = DOCS / "benchmarks" / "charts.toml"
TARGET = DOCS / "images" / "encoding-speed.svg"
IN_README = "encode-mixed"
LABEL, BAR, GAP, GROUP = (
    18,
    10,
    12,
    26,
)  # heights in pixels: a line of text, a bar, space, a heading
README_STYLE = """<style>
text { font: 14px sans-serif; fill: #1f2328 }
.value, .group { font-weight: bold }
.track { fill: #80808022 } .ours { fill: #2a6fb5 } .peer { fill: #9aa5b1 } .slower { fill: #b4690e }
.one { stroke: #808080; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .ours { fill: #6ba6e8 } }
</style>"""


def charts() -> dict[str, dict[str, Any]]:
    """Every chart of the file under its name."""
    return tomllib.loads(SOURCE.read_text(encoding="utf-8"))


def ratio(chart: dict[str, Any], bar: dict[str, Any]) -> float:
    """How many times as good as the peer: as printed, or from the two figures."""
    if "ratio" in bar:
        return float(bar["ratio"])
    value, against = float(bar["value"]), float(bar.get("against", 1))
    less = bar.get("better", chart["better"]) == "less"
    return against / value if less else value / against


def figure(name: str) -> str:
    """The chart as HTML: title, bars, and how it was measured; no blank lines, for Markdown."""
    chart = charts()[name]
    caption = (
        f"Times as fast as {chart['peer']} (dashed line). {chart['measured']}, "
        f"<code>{escape(chart['command'])}</code>."
    )
    return "\n".join(
        [
            f'<figure class="chart" id="chart-{name}">',
            f"<p><strong>{escape(chart['title'])}</strong></p>",
            f'<svg width="100%" height="{_height(chart)}" role="img" '
            f'aria-label="{escape(chart["title"])}">',
            *_bars(chart),
            "</svg>",
            f"<figcaption>{caption}</figcaption>",
            "</figure>",
        ]
    )


def picture(name: str = IN_README) -> str:
    """The chart as a file of its own, with its title, readable on light and dark pages."""
    chart, top = charts()[name], 30
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{top + _height(chart)}">',
            f"<title>{escape(chart['title'])}</title>",
            README_STYLE,
            f'<text class="group" y="16">{escape(chart["title"])}</text>',
            f'<svg y="{top}" width="100%" height="{_height(chart)}">',
            *_bars(chart),
            "</svg>",
            "</svg>\n",
        ]
    )


def _height(chart: dict[str, Any]) -> int:
    groups = sum("group" in bar for bar in chart["bars"])
    return len(chart["bars"]) * (LABEL + BAR + GAP) + groups * GROUP


def _bars(chart: dict[str, Any]) -> Iterator[str]:
    """A line of text over each bar; widths are shares, so that a chart fits every screen."""
    largest = max(1.0, *(ratio(chart, bar) for bar in chart["bars"]))
    one = 100 / largest
    y = 0
    for bar in chart["bars"]:
        if "group" in bar:
            yield f'<text class="group" y="{y + 14}">{escape(bar["group"])}</text>'
            y += GROUP
        times = ratio(chart, bar)
        kind = "peer" if bar.get("other") else "slower" if times < 1 else "ours"
        top = y + LABEL
        yield f'<text y="{y + 13}">{escape(bar["name"])}</text>'
        yield (
            f'<text x="100%" y="{y + 13}" text-anchor="end"><tspan class="note">{_figures(bar)}'
            f'</tspan> <tspan class="value">{_times(bar, times)}</tspan></text>'
        )
        yield f'<rect class="track" y="{top}" width="100%" height="{BAR}"/>'
        share = 100 * times / largest
        yield f'<rect class="{kind}" y="{top}" width="{share:.2f}%" height="{BAR}"/>'
        yield (
            f'<line class="one" x1="{one:.2f}%" x2="{one:.2f}%" y1="{top - 3}" '
            f'y2="{top + BAR + 3}"/>'
        )
        y += LABEL + BAR + GAP


def _times(bar: dict[str, Any], times: float) -> str:
    """As it was printed, or two digits of what two rounded figures give."""
    if "ratio" in bar:
        return f"{bar['ratio']} ×"
    return f"{times:.1f} ×" if times >= 1 else f"{times:.2f} ×"


def _figures(bar: dict[str, Any]) -> str:
    """The figures behind a ratio, ours and the peer's; none where only the ratio was printed."""
    shown = [_number(bar[name]) for name in ("value", "against") if name in bar]
    return " vs ".join(shown)


def _number(value: float) -> str:
    """Two decimals for shares; larger figures as they stand in the file."""
    return f"{value:.2f}" if value < 1 else f"{value:,}"


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
