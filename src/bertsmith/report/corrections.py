"""The page of a corrector: figures by their names, what false alarms cost, texts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import facts, heading, paragraph, table, texts_table
from bertsmith.report.written_texts import training_curves

CORRECTION_FIGURES = {
    "correction_f1": "correction F1 (SIGHAN)",
    "correction_precision": "correction precision (SIGHAN)",
    "correction_recall": "correction recall (SIGHAN)",
    "detection_f1": "detection F1 (SIGHAN)",
    "false_alarm_rate": "false alarms: clean texts changed",
    "sentence_f1": "sentence F1: every changed text counts",
    "character_f1": "character F1",
    "character_right_among_detected": "right characters among detected places",
}


def correction_sections(record: Mapping[str, Any]) -> list[Markup]:
    """The sections of a record."""
    training = record["training"]
    rows = ", ".join(f"{name} {count:,}" for name, count in record["data"]["rows"].items())
    sections = [
        facts(
            [
                ("task", "correct"),
                ("trained from", record["model"]),
                ("rows", rows),
                ("steps", f"{training['steps']:,}, best after {training['best_step'] or 0:,}"),
                ("threshold", f"{record['threshold']:.3f}, tuned on the dev rows"),
                *(("note", note) for note in record["data"]["notes"]),
            ]
        )
    ]
    for name in ("test", "dev"):
        if record.get(name):
            sections += _side(name, record[name])
    return [*sections, *training_curves(record)]


def _side(name: str, side: Mapping[str, Any]) -> list[Markup]:
    simple = (side.get("baselines") or {}).get("bigrams", {})
    rows = []
    for key, title in CORRECTION_FIGURES.items():
        interval = side["intervals"].get(key)
        spread = "" if interval is None else f"{interval['low']:.3f} to {interval['high']:.3f}"
        other = f"{simple[key]:.3f}" if key in simple else ""
        rows.append([title, f"{side['figures'][key]:.3f}", spread, other])
    trade = [
        [f"{one['allowed']:.2f}", f"{one['threshold']:.3f}", f"{one['correction_f1']:.3f}"]
        for one in side["false_alarms"]
    ]
    shown = [(one["wrong"], one["corrected"], one["right"]) for one in side["examples"]]
    return [
        heading(f"Corrected {name} rows"),
        paragraph(f"{side['rows']:,} rows, {side['wrong_rows']:,} of them with mistakes."),
        table(["figure", "model", "95 % interval", "character bigrams"], rows),
        paragraph(
            "The official SIGHAN figures count a text as right if all of its places are; their "
            "precision counts false alarms on clean texts only. Other names, other counts: figures "
            "of different names must not be compared."
        ),
        table(["false alarms allowed", "threshold", "correction F1"], trade),
        texts_table(["wrong", "corrected", "right"], shown),
    ]
