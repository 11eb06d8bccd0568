"""The page of a road: one picture, the table, why there are dashes, what may not be compared."""

from __future__ import annotations

from markupsafe import Markup

from bertsmith.report.elements.charts import COLORS, ChartFrame
from bertsmith.report.elements.page import (
    element,
    facts,
    heading,
    paragraph,
    table,
    texts_table,
)
from bertsmith.studies.road.table import COLUMNS, RANKED, RoadRow, RoadTable

BAR = 34  # pixels per model
WIDTH = 720
LEFT = ("rank", "perplexity_piece", "perplexity_word", "bits_per_character")
APART = ("directions", "pseudo_perplexity")


def road_sections(result: RoadTable) -> list[Markup]:
    """The sections of the page."""
    ranking = result.ranking()
    lead = "No left-to-right model was scored."
    if ranking:
        best = ranking[0]
        lead = (
            f"Of the left-to-right models {best.title} predicts the held-out text best: "
            f"{best.value(RANKED):.3f} bits per character."
        )
    words = [column for column in COLUMNS if column not in (*LEFT, *APART)]
    return [
        paragraph(lead, "lead"),
        picture(ranking),
        heading("Left to right, on the same pieces"),
        _part(result, LEFT, [row for row in result.rows if row.value(RANKED) is not None]),
        heading("Both sides or both directions: never ranked with the others"),
        _part(result, APART, [row for row in result.rows if _has(row, APART)]),
        heading("Vectors of words and texts"),
        _part(result, words, list(result.rows)),
        heading("What each model cost"),
        table(
            ["model", *result.heads()[-3:]],
            [[row.title, *result.texts(row)[-3:]] for row in result.rows],
        ),
        facts([(row.title, row.about) for row in result.rows]),
        heading("What was compared, and what may not be"),
        *(paragraph(note) for note in result.cautions()),
        heading("Why there is a dash"),
        texts_table(["dash", "reason"], result.dashes()),
    ]


def _has(row: RoadRow, columns: tuple[str, ...]) -> bool:
    return any(row.value(column) is not None for column in columns)


def _part(result: RoadTable, columns: tuple[str, ...] | list[str], rows: list[RoadRow]) -> Markup:
    """Some columns of the table."""
    if not rows:
        return paragraph("No model has such a figure.")
    places = [list(COLUMNS).index(column) + 1 for column in columns]
    body = [[row.title, *(result.texts(row)[place] for place in places)] for row in rows]
    bag = result.bag_texts()
    if bag and "probe" in columns:
        body.append([bag[0], *(bag[place] for place in places)])
    return table(["model", *(COLUMNS[column] for column in columns)], body)


def picture(ranking: list[RoadRow]) -> Markup:
    """Bars: bits per character of the ranked models, the best first."""
    bits = [(row.title, row.value(RANKED) or 0.0) for row in ranking]
    if not bits:
        return Markup("")
    frame = ChartFrame(
        (0.0, max(value for _, value in bits) * 1.12),
        (0.0, float(len(bits))),
        size=(WIDTH, 52 + BAR * len(bits)),
        margins=(72, 64),
    )
    frame.y_ticks = []
    bars = []
    for number, (title, value) in enumerate(bits):
        top = frame.y(len(bits) - number) + 6
        bars.append(
            (frame.left, top, round(frame.x(value) - frame.left, 1), BAR - 12, title, value)
        )
    drawn = [
        (x, y, width, height, name, f"{value:.3f}") for x, y, width, height, name, value in bars
    ]
    spoken = "bits per character: " + ", ".join(f"{name} {value:.3f}" for name, value in bits)
    names = ("bits per character of the held-out text: less is better", "")
    return element("charts", "ranking", frame, names, spoken, drawn, COLORS[0])
