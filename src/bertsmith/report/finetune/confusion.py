"""The confusion matrix as a shaded table."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import element, paragraph, subheading
from bertsmith.report.elements.values import as_float, as_list, part
from bertsmith.report.finetune.figures import plural

STRONGEST = 0.6  # a darker cell would hide its number
FEW = 8  # labels that have room at the top; more are numbered


def confusion_table(proof: dict[str, Any]) -> list[Markup]:
    """Rows are true labels, columns predicted ones; the shade is the share of the row."""
    matrix = part(proof, "confusion")
    labels = [str(label) for label in as_list(matrix.get("labels"))]
    counts = [[as_float(count) for count in as_list(row)] for row in as_list(matrix.get("counts"))]
    if not labels or len(counts) != len(labels) or any(len(row) != len(labels) for row in counts):
        return []
    numbered = len(labels) > FEW
    tops = [str(n) for n in range(1, len(labels) + 1)] if numbered else labels
    rows = []
    for number, (label, row) in enumerate(zip(labels, counts, strict=True)):
        total = sum(row)
        cells = [
            _cell(count, count / total if total > 0 else 0.0, right=column == number)
            for column, count in enumerate(row)
        ]
        rows.append((f"{number + 1} {label}" if numbered else label, cells))
    sections = [subheading("Confusion matrix"), element("elements", "matrix", tops, rows)]
    joined = as_float(matrix.get("joined"))
    if joined > 0:
        mixed = plural(matrix.get("mixed", 0), "row")
        words = f"The {joined:,.0f} rarest labels are merged; {mixed} confused among them."
        sections.append(paragraph(words, "dim"))
    return sections


def _cell(count: float, share: float, *, right: bool) -> tuple[str, str, float]:
    """The words, kind and shade of a cell; 0 is no shade."""
    if not count > 0:
        return "0", "none", 0.0
    # Rare confusions must be visible: they get more shade than their share.
    shade = share if right else max(0.14, share**0.5)
    return f"{count:,.0f}", "right" if right else "wrong", round(STRONGEST * min(1.0, shade), 3)
