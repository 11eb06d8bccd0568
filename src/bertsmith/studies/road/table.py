"""The table of a road and its page: a row per model, a cell or a dash with its reason.

Only left-to-right models on the same pieces are ranked; all else may not be compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bertsmith.files.strict_json import json_values
from bertsmith.report.elements.charts import COLORS, ChartFrame
from bertsmith.report.elements.page import (
    element,
    facts,
    heading,
    paragraph,
    table,
    texts_table,
)
from bertsmith.studies.study import StudyTable

COLUMNS: dict[str, str] = {
    "rank": "rank",
    "perplexity_piece": "perplexity per piece",
    "perplexity_word": "perplexity per word",
    "bits_per_character": "bits per character",
    "directions": "ELMo's directions",
    "pseudo_perplexity": "BERT's pseudo-perplexity",
    "similarity_contexts": "similarity, contexts",
    "similarity_inputs": "similarity, input rows",
    "analogies_contexts": "analogies, contexts",
    "analogies_inputs": "analogies, input rows",
    "probe": "probe",
    "senses": "senses",
}
RANKED = "bits_per_character"
PARTS = ((1, 7), (7, 13), (13, 16))  # columns of the table, as they fit a terminal
WITH_PROBE = 1  # the part that has the column of the probe
NOTES = (
    "Only the perplexities of left-to-right models are ranked: they predict the same pieces of the "
    "same lines, line ends included. Perplexity per word is all nats over all words.",
    "BERT's pseudo-perplexity hides one piece at a time and sees both sides: it is no perplexity, "
    "and may not be compared with one. ELMo's two directions predict words of its own vocabulary, "
    "all others as one unknown word: neither with pieces nor with each other.",
    "Similarity is Spearman's correlation and analogies the share of right answers among the words "
    "that all models know; answers are looked for among these words only, so that both are higher "
    "than published figures. Contexts: the mean over up to 20 held-out sentences; input rows: the "
    "vector without a sentence, that of a word of several pieces their mean.",
    "The probe is a logistic regression on the mean vector of a text; its interval is over test "
    "rows, not over trainings. Texts of the probe may be among the training documents, without "
    "their labels.",
    "In the sense test a neighbor gives the sense away; one vector per word cannot pass it.",
    "Every model was trained once: differences between seeds are not in the table. Seconds are of "
    "training on this machine and of no other; bytes are of the model folder.",
)
BAR = 34  # pixels per model
WIDTH = 720
LEFT = ("rank", "perplexity_piece", "perplexity_word", "bits_per_character")
APART = ("directions", "pseudo_perplexity")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadRow:
    """A model: its cells by column, each with a `value` or a `reason`; None where it failed."""

    name: str
    title: str
    about: str
    cells: Mapping[str, Mapping[str, Any]]
    seconds: float | None = None
    steps: int | None = None  # of training; None where there are none
    parameters: int | None = None
    size: int | None = None

    def value(self, column: str) -> float | None:
        """The number of a cell; None where there is a dash."""
        value = self.cells.get(column, {}).get("value")
        return None if value is None or not math.isfinite(value) else float(value)

    def reason(self, column: str) -> str:
        """Why a cell has no number."""
        return str(self.cells.get(column, {}).get("reason", "it was not measured"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoadTable:
    """All rows; `facts` are sentences about this road, `bag_of_words` the probe's comparison."""

    rows: tuple[RoadRow, ...]
    facts: tuple[str, ...] = ()
    bag_of_words: Mapping[str, Any] | None = None

    def ranking(self) -> list[RoadRow]:
        """Left-to-right models, the best first; no other model is among them."""
        ranked = [row for row in self.rows if row.value(RANKED) is not None]
        return sorted(ranked, key=lambda row: row.value(RANKED) or 0.0)

    def rank(self, row: RoadRow) -> int | None:
        """1 for the best left-to-right model, None for a model that is not ranked."""
        names = [one.name for one in self.ranking()]
        return names.index(row.name) + 1 if row.name in names else None

    def heads(self) -> list[str]:
        """The names of the columns."""
        return ["model", *COLUMNS.values(), "training", "parameters", "size"]

    def texts(self, row: RoadRow) -> list[str]:
        """The cells of a row as text."""
        cells = [self._text(row, column) for column in COLUMNS]
        seconds = "-" if row.seconds is None else f"{row.seconds:.0f} s"
        if row.steps is not None:
            seconds += f", {row.steps:,} step{'s' if row.steps != 1 else ''}"
        size = "-" if row.size is None else f"{row.size / 1e6:.1f} MB"
        return [row.title, *cells, seconds, _many(row.parameters), size]

    def _text(self, row: RoadRow, column: str) -> str:
        if column == "rank":
            rank = self.rank(row)
            return "-" if rank is None else str(rank)
        value, cell = row.value(column), row.cells.get(column, {})
        if value is None:
            return "-"
        if column == "directions":
            return f"{value:.1f} / {cell['other']:.1f}"
        if column.startswith(("perplexity", "pseudo")):
            return f"{value:.1f}"
        if column == "probe":
            return _interval(cell)
        if column == "senses":
            return f"{value:.3f} ({cell['passed']} of {len(cell['words'])} passed)"
        return f"{value + 0.0:.3f}".replace("-0.000", "0.000")

    def bag_texts(self) -> list[str]:
        """A row of its own for the bag of words, which has a probe only; none without a probe."""
        if self.bag_of_words is None:
            return []
        cells = [_interval(self.bag_of_words) if name == "probe" else "" for name in COLUMNS]
        return ["bag of words", *cells, "", "", ""]

    def dashes(self) -> list[tuple[str, str]]:
        """The models and columns of each dash, and its reason; equal ones together."""
        found: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            reasons: dict[str, list[str]] = {}
            for column, head in COLUMNS.items():
                if self._text(row, column) == "-":
                    reasons.setdefault(row.reason(column), []).append(head)
            for why, heads in reasons.items():
                found.setdefault(("; ".join(heads), why), []).append(row.title)
        return [(f"{heads} of {', '.join(titles)}", why) for (heads, why), titles in found.items()]

    @property
    def head(self) -> tuple[str, ...]:
        """Nothing stands before the table."""
        return ()

    @property
    def tables(self) -> list[StudyTable]:
        """The columns in parts, each with the names of the models."""
        heads, bag = self.heads(), self.bag_texts()
        rows = [self.texts(row) for row in self.rows]
        tables = []
        for number, (first, last) in enumerate(PARTS):
            some = [*rows, bag] if bag and number == WITH_PROBE else rows
            body = [[row[0], *row[first:last]] for row in some]
            tables.append(StudyTable(heads=[heads[0], *heads[first:last]], rows=body))
        return tables

    @property
    def notes(self) -> list[str]:
        """Facts about this road, what may not be compared, and the reason of each dash."""
        return [*self.cautions(), *(f"- {where}: {why}" for where, why in self.dashes())]

    def cautions(self) -> list[str]:
        """Facts about this road, then what may not be compared."""
        return [*self.facts, *NOTES]

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON."""
        rows = [
            {
                "model": row.name,
                "about": row.about,
                "rank": self.rank(row),
                "cells": row.cells,
                "seconds": row.seconds,
                "steps": row.steps,
                "parameters": row.parameters,
                "bytes": row.size,
            }
            for row in self.rows
        ]
        record = {"rows": rows, "bag_of_words": self.bag_of_words, "notes": self.cautions()}
        return dict(json_values(record))


def _interval(cell: Mapping[str, Any]) -> str:
    return f"{cell['value']:.3f} ({cell['low']:.3f}-{cell['high']:.3f})"


def _many(count: int | None) -> str:
    if count is None:
        return "-"
    return f"{count / 1e6:.2f} M" if count >= 1e5 else f"{count:,}"


def complete(
    cells: Mapping[str, Mapping[str, Any]], lacks: Mapping[str, str], *, failed: str | None = None
) -> dict[str, Mapping[str, Any]]:
    """Every column with a value or a reason."""
    whole: dict[str, Mapping[str, Any]] = {}
    for column in COLUMNS:
        if column == "rank":
            column_lacks = lacks.get(column)
            whole[column] = {"reason": column_lacks} if column_lacks else {}
            continue
        if column in cells:
            whole[column] = cells[column]
        else:
            why = failed or lacks.get(column) or "it was not measured"
            whole[column] = {"reason": why}
    if failed:
        whole["rank"] = {"reason": failed}
    return whole


def without_times(table: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a table without what differs between two equal runs: seconds."""
    rows: Sequence[Mapping[str, Any]] = table["rows"]
    plain = [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
    return {**table, "rows": plain}


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
