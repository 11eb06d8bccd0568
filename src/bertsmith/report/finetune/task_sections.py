"""Sections of single tasks: residuals, entity errors, question words, answerability."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.charts import Point, histogram, shown, square
from bertsmith.report.elements.page import paragraph, subheading, table
from bertsmith.report.elements.values import as_dicts, as_float, as_list, part
from bertsmith.report.finetune.figures import counted, fraction, percent

ANSWERABILITY = (
    ("answerable", "answered_with_answer", "silent_with_answer"),
    ("unanswerable", "answered_without_answer", "silent_without_answer"),
)


def number_plots(proof: dict[str, Any]) -> list[Markup]:
    """Predicted against true values, and the distribution of residuals."""
    residuals = part(proof, "numbers")
    pairs = [[as_float(v) for v in as_list(one)] for one in as_list(residuals.get("points"))]
    points = [
        Point(one[0], one[1]) for one in pairs if len(one) == 2 and all(map(math.isfinite, one))
    ]
    if not points:
        return []
    ends = [value for point in points for value in (point.x, point.y)]
    bins = as_dicts(residuals.get("bins"))
    bars = [tuple(as_float(one.get(key)) for key in ("low", "high", "count")) for one in bins]
    bias = as_float(residuals.get("bias"))
    words = (
        f"Mean absolute error {shown(as_float(residuals.get('mean_absolute_error')))}, 90th "
        f"percentile {shown(as_float(residuals.get('p90_absolute_error')))}. Predictions are "
        f"{shown(abs(bias))} too {'high' if bias > 0 else 'low'} on average."
    )
    low, high = min(ends), max(ends)
    sections = [
        subheading("True and predicted values"),
        paragraph(words),
        square(points, low=low, high=high if high > low else low + 1, names=("true", "predicted")),
    ]
    if bars:
        drawn = [(low, high, count) for low, high, count in bars]
        sections.append(paragraph("Residuals (predicted minus true):", "dim"))
        sections.append(histogram(drawn, x_name="residual", low=drawn[0][0], high=drawn[-1][1]))
    return sections


def entity_kinds(proof: dict[str, Any]) -> list[Markup]:
    """Entity errors by kind."""
    kinds = part(proof, "entity_errors")
    if not kinds:
        return []
    total = sum(as_float(count) for count in kinds.values()) or 1.0
    rows = [[name, counted(n), percent(as_float(n) / total)] for name, n in kinds.items()]
    return [subheading("Entity errors"), table(["", "entities", "share"], rows)]


def question_words(proof: dict[str, Any]) -> list[Markup]:
    """Metrics by question word, and answered against answerable questions."""
    sections = []
    questions = as_dicts(proof.get("questions"))
    if questions:
        rows = [
            [
                one.get("word"),
                counted(one.get("rows")),
                *(fraction(one.get(k)) for k in ("f1", "exact")),
            ]
            for one in questions
        ]
        sections += [
            subheading("By question word"),
            table(["", "questions", "F1", "exact match"], rows),
        ]
    answerability = part(proof, "answerability")
    if answerability:
        rows = [
            [name, counted(answerability.get(answered)), counted(answerability.get(silent))]
            for name, answered, silent in ANSWERABILITY
        ]
        sections += [subheading("Answerability"), table(["", "answered", "no answer given"], rows)]
    return sections
