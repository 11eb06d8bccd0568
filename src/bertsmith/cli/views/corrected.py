"""Results of correctors as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertsmith.cli.shared.console import table_lines
from bertsmith.report.corrections import CORRECTION_FIGURES
from bertsmith.tasks.spelling.edits import CorrectedText
from bertsmith.wording import counted, duration


def correction_lines(out: Path, record: dict[str, Any], page: Path) -> list[str]:
    """The result of a training: figures next to the baseline, where the report is."""
    training = record["training"]
    spent = [counted(training["steps"], "step"), f"best after step {training['best_step'] or 0:,}"]
    if training.get("seconds"):
        spent.append(duration(training["seconds"]))
    lines = [f"{out}: {', '.join(spent)}, threshold {record['threshold']:.3f}"]
    for name in ("dev", "test"):
        if record.get(name):
            side = record[name]
            lines.append(
                f"{name}, {counted(side['rows'], 'row')}, {side['wrong_rows']:,} with mistakes:"
            )
            lines += corrected_side(side)
    return [*lines, f"report: {page}"]


def corrected_side(side: Mapping[str, Any]) -> list[str]:
    """Figures of corrected rows."""
    simple = (side.get("baselines") or {}).get("bigrams", {})
    rows = [
        [
            f"  {title}",
            f"{side['figures'][key]:.3f}",
            *([f"{simple[key]:.3f}"] if simple else []),
        ]
        for key, title in CORRECTION_FIGURES.items()
    ]
    lines = table_lines(["", "model", *(["bigrams"] if simple else [])], rows)
    low, high = (side["intervals"][side["main"]][end] for end in ("low", "high"))
    return [*lines, f"  95 % interval over rows: correction F1 {low:.3f} to {high:.3f}"]


def marked(one: CorrectedText) -> str:
    """A text with its edits in place, as [-wrong-]{+right+}."""
    parts, last = [], 0
    for edit in one.edits:
        parts += [one.text[last : edit.start], f"[-{edit.wrong}-]{{+{edit.right}+}}"]
        last = edit.end
    return "".join([*parts, one.text[last:]])
