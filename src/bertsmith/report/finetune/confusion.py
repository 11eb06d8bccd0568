"""The confusion matrix as a shaded table."""

from __future__ import annotations

from typing import Any

from bertsmith.report.elements.page import paragraph, scrolled, subheading, text
from bertsmith.report.elements.values import as_float, as_list, part
from bertsmith.report.finetune.figures import plural

RIGHT, WRONG = "47, 158, 91", "217, 104, 43"
STRONGEST = 0.6  # a darker cell would hide its number
FEW = 8  # labels that have room at the top; more are numbered


def confusion_table(proof: dict[str, Any]) -> list[str]:
    """Rows are true labels, columns predicted ones; the shade is the share of the row."""
    matrix = part(proof, "confusion")
    labels = [str(label) for label in as_list(matrix.get("labels"))]
    counts = [[as_float(count) for count in as_list(row)] for row in as_list(matrix.get("counts"))]
    if not labels or len(counts) != len(labels) or any(len(row) != len(labels) for row in counts):
        return []
    numbered = len(labels) > FEW
    tops = [str(n) for n in range(1, len(labels) + 1)] if numbered else labels
    head = "".join(f"<th>{text(top)}</th>" for top in tops)
    lines = [f'<tr><th class="name">true ↓ predicted →</th>{head}</tr>']
    for number, (label, row) in enumerate(zip(labels, counts, strict=True)):
        total = sum(row)
        name = f"{number + 1} {label}" if numbered else label
        cells = "".join(
            _cell(count, count / total if total > 0 else 0.0, right=column == number)
            for column, count in enumerate(row)
        )
        lines.append(f'<tr><th class="name">{text(name)}</th>{cells}</tr>')
    sections = [
        subheading("Confusion matrix"),
        scrolled(f'<table class="matrix">{"".join(lines)}</table>'),
    ]
    joined = as_float(matrix.get("joined"))
    if joined > 0:
        mixed = plural(matrix.get("mixed", 0), "row")
        words = f"The {joined:,.0f} rarest labels are merged; {mixed} confused among them."
        sections.append(paragraph(words, "dim"))
    return sections


def _cell(count: float, share: float, *, right: bool) -> str:
    if not count > 0:
        return '<td class="none">0</td>'
    shade = round(STRONGEST * min(1.0, share), 3)
    color = RIGHT if right else WRONG
    # Rare confusions must be visible: they get more shade than their share.
    shade = shade if right else round(max(0.08, STRONGEST * min(1.0, share) ** 0.5), 3)
    return f'<td style="background: rgba({color}, {shade})">{text(f"{count:,.0f}")}</td>'
