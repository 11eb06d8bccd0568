"""The whole report: overview, metrics, evaluation, data, training, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from bertsmith.files.atomic_file import write_staged
from bertsmith.report.elements.page import folded, heading, page, paragraph
from bertsmith.report.elements.values import part
from bertsmith.report.finetune.calibration import calibration_plot
from bertsmith.report.finetune.confusion import confusion_table
from bertsmith.report.finetune.data_sections import length_section, survey_section, truncation_cost
from bertsmith.report.finetune.enrichment import enrichment_section
from bertsmith.report.finetune.overview import overview, reported_split
from bertsmith.report.finetune.tables import class_table, figure_table, repeated_runs
from bertsmith.report.finetune.task_sections import entity_kinds, number_plots, question_words
from bertsmith.report.finetune.training_sections import curve_section, settings_section
from bertsmith.report.finetune.worst_errors import worst_errors

REPORT = "report.html"
SECTIONS = (
    class_table,
    confusion_table,
    entity_kinds,
    question_words,
    number_plots,
    calibration_plot,
    truncation_cost,
    worst_errors,
)


def write_finetune_report(folder: Path, record: dict[str, Any]) -> Path:
    """Write report.html into the folder of a model, from its record."""
    path = folder / REPORT
    write_staged(path, finetune_page(record, title=folder.resolve().name).encode())
    return path


def finetune_page(record: dict[str, Any], *, title: str) -> str:
    """The page of a record; whatever the record does not have is left out."""
    sections = [*overview(record), *figure_table(record), *repeated_runs(record)]
    sections += enrichment_section(record)
    first = reported_split(record)
    if first is not None:
        sections += [heading(f"Evaluation on {first}"), *_proof(record, first)]
        other = "dev" if first == "test" else "test"
        rest = _proof(record, other)
        if rest:
            sections.append(folded(f"Evaluation on {other}", rest))
    sections += [*survey_section(record), *length_section(record)]
    sections += [*curve_section(record), *settings_section(record)]
    sections.append(paragraph("All numbers of this page are in proof.json.", "dim"))
    return page(f"{title}: report", sections)


def _proof(record: dict[str, Any], split: str) -> list[Markup]:
    proof = part(record, split)
    return [line for section in SECTIONS for line in section(proof)]
