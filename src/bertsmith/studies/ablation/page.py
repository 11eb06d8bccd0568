"""The page and the Markdown of an ablation: the table, and a forest plot for every metric."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from bertsmith.report.elements import markdown
from bertsmith.report.elements.charts import COLORS, ChartFrame, shown
from bertsmith.report.elements.page import (
    element,
    facts,
    heading,
    page,
    paragraph,
    subheading,
    table,
)
from bertsmith.studies.ablation.table import (
    DIRECTION,
    AblationCell,
    AblationRow,
    AblationTable,
    lower_is_better,
)
from bertsmith.wording import counted, duration

ROW_HEIGHT = 26  # pixels per row of a forest plot
LONGEST_LABEL = 30  # letters in front of a plot


def table_heads(result: AblationTable) -> list[str]:
    """The columns: two for every metric, then cost and what the row shows."""
    metrics = [one for name in result.metrics for one in (name, "difference")]
    return ["row", *metrics, "tokens", "parameters", "size", "time", "shows"]


def table_cells(result: AblationTable, row: AblationRow) -> list[str]:
    """A row of the table as text."""
    cells = [row.name]
    for name in result.metrics:
        cells += [_value(row.cells[name]), _difference(row.cells[name])]
    return [
        *cells,
        f"{row.tokens / 1e6:.2f} M",
        f"{row.parameters / 1e6:.2f} M",
        f"{row.size / 1e6:.1f} MB",
        duration(row.seconds),
        row.summary,
    ]


def _value(cell: AblationCell) -> str:
    if cell.value is None:
        return "-"
    if math.isnan(cell.value.low):
        return f"{cell.value.mean:.4f}"
    return f"{cell.value.mean:.4f} ± {cell.value.high - cell.value.mean:.4f}"


def _difference(cell: AblationCell) -> str:
    gap = cell.difference
    if gap is None:
        return "-" if cell.value is None else ""
    if math.isnan(gap.low):
        return f"{gap.value:+.4f}"
    return f"{gap.value:+.4f} ({gap.low:+.4f} to {gap.high:+.4f}){' *' if cell.star else ''}"


def ablation_markdown(result: AblationTable, *, title: str) -> str:
    """The table and its notes as Markdown."""
    rows = [[markdown.words(cell) for cell in table_cells(result, row)] for row in result.rows]
    heads = [markdown.words(head) for head in table_heads(result)]
    lines = [f"# {markdown.words(title)}", "", *markdown.table(heads, rows), ""]
    lines += [f"- {markdown.words(note)}" for note in result.notes()]
    return "\n".join(lines) + "\n"


def ablation_page(result: AblationTable, *, title: str) -> str:
    """The whole page."""
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
            ["row", *table_heads(result)[-5:-1]],
            [[row.name, *table_cells(result, row)[-5:-1]] for row in result.rows],
        ),
        *(paragraph(note) for note in result.notes()),
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
    return page(title, sections)


def _metric_rows(result: AblationTable, metric: str) -> list[list[str]]:
    """The table of one metric."""
    rows = []
    for row in result.rows:
        cell = row.cells[metric]
        p = "" if math.isnan(cell.p) else f"{cell.p:.3f}"
        shows: str = cell.verdict or ""
        if shows == DIRECTION:
            shows = f"{shows}: {cell.direction or 'seeds disagree'}"
        rows.append([row.name, _value(cell), _difference(cell), p, shows])
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
            words = f"{row.name}: {_difference(cell)}"
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
