"""What only some tasks have: numbers, kinds of entity errors, question words, silence."""

from __future__ import annotations

import math
from typing import Any

from bertsmith.report.elements.chart import shown
from bertsmith.report.elements.histogram import histogram
from bertsmith.report.elements.page import paragraph, subheading, table
from bertsmith.report.elements.scatter import Point, square
from bertsmith.report.elements.values import as_dict, as_float, as_list, part
from bertsmith.report.finetune.figures import counted, percent

SILENCE = (
    ("answerable", "answered_with_answer", "silent_with_answer"),
    ("unanswerable", "answered_without_answer", "silent_without_answer"),
)


def number_plots(proof: dict[str, Any]) -> list[str]:
    """Answer against truth, and how the differences are spread."""
    told = part(proof, "numbers")
    pairs = [[as_float(v) for v in as_list(one)] for one in as_list(told.get("points"))]
    points = [
        Point(one[0], one[1]) for one in pairs if len(one) == 2 and all(map(math.isfinite, one))
    ]
    if not points:
        return []
    ends = [value for point in points for value in (point.x, point.y)]
    bins = [as_dict(one) for one in as_list(told.get("bins"))]
    bars = [tuple(as_float(one.get(key)) for key in ("low", "high", "count")) for one in bins]
    bias = as_float(told.get("bias"))
    words = (
        f"On average it is {shown(as_float(told.get('mean_absolute_error')))} away; nine of ten "
        f"rows are within {shown(as_float(told.get('p90_absolute_error')))}. Its answers are "
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


def entity_kinds(proof: dict[str, Any]) -> list[str]:
    """In which way entities are wrong."""
    kinds = part(proof, "entity_errors")
    if not kinds:
        return []
    total = sum(as_float(count) for count in kinds.values()) or 1.0
    rows = [[name, counted(n), percent(as_float(n) / total)] for name, n in kinds.items()]
    return [subheading("Entity errors"), table(["", "entities", "share"], rows)]


def question_words(proof: dict[str, Any]) -> list[str]:
    """Figures by what is asked for, and whether silence was right."""
    sections = []
    asked = [as_dict(one) for one in as_list(proof.get("questions"))]
    if asked:
        rows = [
            [
                one.get("word"),
                counted(one.get("rows")),
                *(percent(one.get(k)) for k in ("f1", "exact")),
            ]
            for one in asked
        ]
        sections += [
            subheading("By question word"),
            table(["", "questions", "F1", "exact match"], rows),
        ]
    silence = part(proof, "silence")
    if silence:
        rows = [
            [name, counted(silence.get(spoke)), counted(silence.get(silent))]
            for name, spoke, silent in SILENCE
        ]
        sections += [subheading("Answerability"), table(["", "answered", "no answer given"], rows)]
    return sections
