"""The page of a corrector: figures by their names, what false alarms cost, texts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import facts, heading, paragraph, table, texts_table
from bertsmith.report.finetune.overview import run_facts
from bertsmith.report.finetune.tables import repeated_runs
from bertsmith.report.finetune.training_sections import curve_section, settings_section
from bertsmith.report.result import SIDES, ResultSide, ResultView
from bertsmith.report.written_texts import row_notes
from bertsmith.wording import counted

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


def correction_sections(record: dict[str, Any]) -> list[Markup]:
    """The sections of a record."""
    threshold = ("threshold", f"{record['threshold']:.3f}, tuned on the dev rows")
    sections = [facts([*run_facts(record), threshold, *row_notes(record)])]
    for name in ("test", "dev"):
        if record.get(name):
            sections += _side(name, record[name])
    sections += repeated_runs(record)
    return [*sections, *curve_section(record), *settings_section(record)]


def correction_result(record: Mapping[str, Any]) -> ResultView:
    """Figures next to those of the baseline."""
    sides = [
        correction_side(
            record[name],
            f"{name}, {counted(record[name]['rows'], 'row')}, "
            f"{record[name]['wrong_rows']:,} with mistakes",
        )
        for name in SIDES
        if record.get(name)
    ]
    return ResultView(spent=[f"threshold {record['threshold']:.3f}"], sides=sides)


def correction_side(side: Mapping[str, Any], title: str) -> ResultSide:
    """Figures of corrected rows."""
    simple = (side.get("baselines") or {}).get("bigrams")
    columns = [side["figures"], *([simple] if simple else [])]
    low, high = (side["intervals"][side["main"]][end] for end in ("low", "high"))
    return ResultSide(
        title=title,
        header=["", "model", *(["bigrams"] if simple else [])],
        rows=[
            [name, *(f"{column[key]:.3f}" for column in columns)]
            for key, name in CORRECTION_FIGURES.items()
        ],
        remarks=[f"95 % interval over rows: correction F1 {low:.3f} to {high:.3f}"],
    )


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
