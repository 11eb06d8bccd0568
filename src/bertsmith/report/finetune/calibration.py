"""Calibration as a reliability diagram and a sentence."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.charts import Point, histogram, square
from bertsmith.report.elements.page import paragraph, subheading
from bertsmith.report.elements.values import as_dicts, as_float, part
from bertsmith.report.finetune.figures import fraction

LARGEST = 13.0  # radius of the bin with the most rows
CLOSE = 0.02


def calibration_plot(proof: dict[str, Any]) -> list[Markup]:
    """Confidence against accuracy, and the distribution of confidence."""
    summary = part(proof, "calibration")
    bins = as_dicts(summary.get("bins"))
    if not bins:
        return []
    most = max((as_float(one.get("count")) for one in bins), default=1.0) or 1.0
    points = [_point(one, most) for one in bins]
    counts = [
        (as_float(one.get("low")), as_float(one.get("high")), as_float(one.get("count")))
        for one in bins
    ]
    unit = str(summary.get("counted", "rows"))
    return [
        subheading("Calibration"),
        paragraph(_words(summary)),
        square(points, low=0.0, high=1.0, names=("confidence", "accuracy")),
        paragraph(f"Distribution of confidence over {unit}:", "dim"),
        histogram(counts, x_name="confidence", low=0.0, high=1.0),
    ]


def _point(one: dict[str, Any], most: float) -> Point:
    count = as_float(one.get("count"))
    x, y = as_float(one.get("confidence")), as_float(one.get("right"))
    size = LARGEST * math.sqrt(max(count, 0.0) / most) if math.isfinite(count) else 0.0
    words = f"confidence {fraction(x)}: {fraction(y)} of {count:,.0f} right"
    return Point(x, y, max(2.0, size), words)


def _words(summary: dict[str, Any]) -> str:
    error = as_float(summary.get("ece"))
    sure, right = as_float(summary.get("confidence")), as_float(summary.get("right"))
    words = f"Expected calibration error {fraction(error)}."
    if summary.get("counted") == "labels of rows":
        words += f" Mean probability of a label {fraction(sure)}, share of true labels "
        words += f"{fraction(right)}."
    elif math.isfinite(sure) and math.isfinite(right):
        kind = "well calibrated"
        if abs(sure - right) > CLOSE:
            kind = "overconfident" if sure > right else "underconfident"
        words += f" Mean confidence {fraction(sure)}, accuracy {fraction(right)}: {kind}."
    return f"{words} Points below the dashed line are overconfident."
