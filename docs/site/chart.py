"""docs/images/encoding-speed.svg from the first table of docs/benchmarks.md: run it to redraw."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
TARGET = DOCS / "images" / "encoding-speed.svg"
COLUMN = 2  # mixed lengths
WIDTH, LABEL, BAR, GAP = 720, 210, 22, 8
TITLE = "Texts per second, all-MiniLM-L6-v2, mixed lengths, two cores (Zen 4)"
OURS, OTHERS = "#2a6fb5", "#9aa5b1"


def rates() -> list[tuple[str, float]]:
    """Library and texts per second, in the order of the page."""
    lines = (DOCS / "benchmarks.md").read_text(encoding="utf-8").splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("| sentence-transformers"))
    found = []
    for line in lines[first:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.split("|")]
        number = re.match(r"[\d,.]+", cells[COLUMN + 1])
        if number:
            found.append((cells[1], float(number[0].replace(",", ""))))
    return found


def chart() -> str:
    """The SVG: one bar per library; gray text is readable on light and dark pages."""
    rows = rates()
    scale = (WIDTH - LABEL - 70) / max(rate for _, rate in rows)
    top = 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
        f'{top + len(rows) * (BAR + GAP)}" font-family="sans-serif" font-size="14" fill="#6b7280">',
        "<title>Texts per second by library</title>",
        f'<text x="0" y="18">{TITLE}</text>',
    ]
    for at, (name, rate) in enumerate(rows):
        y = top + at * (BAR + GAP)
        color = OURS if name.startswith("bertsmith") else OTHERS
        middle, width = y + BAR - 6, rate * scale
        parts += [
            f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{name}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{color}"/>',
            f'<text x="{LABEL + width + 6:.1f}" y="{middle}">{rate:g}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    TARGET.write_text(chart(), encoding="utf-8")
