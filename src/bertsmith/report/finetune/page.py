"""The sections of the page: overview, metrics, evaluation, data, training, settings."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import folded, heading
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


def finetune_sections(record: dict[str, Any]) -> list[Markup]:
    """The sections of a record; whatever the record does not have is left out."""
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
    return [*sections, *curve_section(record), *settings_section(record)]


def _proof(record: dict[str, Any], split: str) -> list[Markup]:
    proof = part(record, split)
    return [line for section in SECTIONS for line in section(proof)]
