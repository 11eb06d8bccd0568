"""The page of an ablation: what each row shows and costs, and a forest plot for every metric."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from bertsmith.report.elements.charts import COLORS, ChartFrame, shown
from bertsmith.report.elements.page import (
    element,
    facts,
    heading,
    paragraph,
    subheading,
    table,
)
from bertsmith.studies.ablation.table import (
    DIRECTION,
    AblationRow,
    AblationTable,
    lower_is_better,
)
from bertsmith.wording import counted

ROW_HEIGHT = 26  # pixels per row of a forest plot
LONGEST_LABEL = 30  # letters in front of a plot


def ablation_sections(result: AblationTable) -> list[Markup]:
    """The sections of the page."""
    (whole,) = result.tables
    sections = [
        paragraph(
            f"{counted(len(result.rows) - 1, 'variation')} against the base, "
            f"{counted(len(result.seeds), 'seed')}, {counted(result.stars, 'difference')} shown.",
            "lead",
        ),
        heading("What each row shows"),
        facts([(row.name, row.summary) for row in result.rows[1:]]),
        heading("What each row costs"),
        table(
            ["row", *whole.heads[-5:-1]],
            [[row[0], *row[-5:-1]] for row in whole.rows],
        ),
        *(paragraph(note) for note in result.notes),
        heading("Differences to the base"),
        paragraph(
            "Dot: mean of the paired differences; bar: 95 % interval of one comparison. Filled: "
            "shown after Holm's correction over the table; hollow: not shown."
        ),
    ]
    for metric in result.metrics:
        better = "to the left is better" if lower_is_better(metric) else "to the right is better"
        sections += [
            subheading(f"{metric} ({better})"),
            forest(result.rows[1:], metric),
            table(["row", metric, "difference", "p (Holm)", "shows"], _metric_rows(result, metric)),
        ]
    sections += [
        heading("Settings of the rows"),
        facts([(row.name, "; ".join(row.settings)) for row in result.rows[1:]]),
    ]
    return sections


def _metric_rows(result: AblationTable, metric: str) -> list[list[str]]:
    """The table of one metric."""
    rows = []
    for row in result.rows:
        cell = row.cells[metric]
        p = "" if math.isnan(cell.p) else f"{cell.p:.3f}"
        shows: str = cell.verdict or ""
        if shows == DIRECTION:
            shows = f"{shows}: {cell.direction or 'seeds disagree'}"
        rows.append([row.name, cell.text(), cell.difference_text(), p, shows])
    return rows


def forest(rows: Sequence[AblationRow], metric: str) -> Markup:
    """A line for every row: the difference as a dot, its interval as a bar, 0 as a line."""
    found = [(row, row.cells[metric]) for row in rows]
    drawable = [(row, cell.difference, cell) for row, cell in found if cell.difference is not None]
    missing = [f"{row.name}: {cell.dash}" for row, cell in found if cell.dash]
    drawn: list[Markup] = []
    if drawable:
        ends = [0.0]
        for _, gap, _ in drawable:
            ends += [one for one in (gap.value, gap.low, gap.high) if math.isfinite(one)]
        pad = (max(ends) - min(ends)) * 0.05 or 1e-3
        frame = ChartFrame(
            (min(ends) - pad, max(ends) + pad),
            (0.0, 1.0),
            size=(880, 56 + ROW_HEIGHT * len(drawable)),
            margins=(210, 120),
        )
        frame.y_ticks = []
        lines = []
        for number, (row, gap, cell) in enumerate(drawable):
            y = frame.top + ROW_HEIGHT * (number + 0.5)
            frame.y_ticks.append((round(y, 1), _label(row.name)))
            bar = (
                (frame.x(gap.low), frame.x(gap.high))
                if math.isfinite(gap.low)
                else (frame.x(gap.value),) * 2
            )
            words = f"{row.name}: {cell.difference_text()}"
            lines.append((round(y, 1), frame.x(gap.value), bar, cell.star, shown(gap.value), words))
        spoken = "; ".join(words for *_, words in lines)
        names = (f"difference of {metric}", "")
        drawn.append(
            element("charts", "forest", frame, names, spoken, (frame.x(0.0), lines), COLORS[0])
        )
    drawn += [paragraph(f"- {words}") for words in missing]
    return Markup("").join(drawn)


def _label(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1]}…"
