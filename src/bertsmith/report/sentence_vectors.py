"""The page of a model of sentence vectors: its figures after training and before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import facts, heading, paragraph, table
from bertsmith.report.elements.values import as_float, as_list, part
from bertsmith.report.finetune.figures import counted, name_of, value_of
from bertsmith.report.finetune.overview import main_metric, reported_split, run_facts
from bertsmith.report.finetune.tables import repeated_runs
from bertsmith.report.finetune.training_sections import curve_section, settings_section
from bertsmith.report.result import SIDES, ResultSide, ResultView


def sentence_sections(record: dict[str, Any]) -> list[Markup]:
    """The sections of a record; whatever the record does not have is left out."""
    known = [*run_facts(record), *_objective(record)]
    sections = [*_headline(record), facts(known)]
    for split in ("test", "dev"):
        sections += _figures(record, split)
    sections += repeated_runs(record)
    return [*sections, *curve_section(record), *settings_section(record)]


def sentence_result(record: Mapping[str, Any]) -> ResultView:
    """The figures of each side after training and before it."""
    return ResultView(sides=[_result_side(name, record[name]) for name in SIDES if record[name]])


def _result_side(name: str, scores: Mapping[str, Any]) -> ResultSide:
    columns = [scores["figures"], *([scores["before"]] if "before" in scores else [])]
    interval, note = scores["interval"], scores["note"]
    remarks = [str(note)] if note else []
    if interval is not None:
        low, high = (value_of(interval["figure"], interval[end]) for end in ("low", "high"))
        remarks.append(f"95 % interval over rows: {interval['figure']} {low} to {high}")
    return ResultSide(
        title=f"{name}: {scores['file']}, {scores['measure']}, {scores['rows']:,} rows",
        header=["", "after", "before"][: 1 + len(columns)],
        rows=[
            [figure, *(value_of(figure, column.get(figure)) for column in columns)]
            for figure in scores["figures"]
        ],
        remarks=remarks,
    )


def _headline(record: dict[str, Any]) -> list[Markup]:
    """What training changed, by the figure that decides."""
    split = reported_split(record)
    if split is None:
        return []
    scores = part(record, split)
    main = main_metric(scores)
    now, before = part(scores, "figures").get(main), part(scores, "before").get(main)
    words = f"{name_of(main)} {value_of(main, now)} on {counted(scores.get('rows'))} {split} rows"
    if before is not None:
        words += f", {value_of(main, before)} before training"
    lines = [paragraph(f"{words[:1].upper()}{words[1:]}.", "lead")]
    if before is not None and as_float(now) <= as_float(before):
        lines.append(paragraph("Training did not help: the model it started from is as good."))
    return lines


def _objective(record: dict[str, Any]) -> list[tuple[str, str]]:
    objective = part(record, "objective")
    settings = [f"{name} {value}" for name, value in objective.items() if name != "kind"]
    words = ", ".join([str(objective.get("kind", "")), *settings])
    rows = [("objective", words)] if words else []
    notes = as_list(part(record, "data").get("notes"))
    return [*rows, *(("rows", str(note)) for note in notes)]


def _figures(record: dict[str, Any], split: str) -> list[Markup]:
    """Every figure of a split, after training and before it, with the interval of the first."""
    scores = part(record, split)
    figures, before = part(scores, "figures"), part(scores, "before")
    if not figures:
        return []
    borders = part(scores, "interval")
    rows = []
    for name, value in figures.items():
        interval = ""
        if borders and borders.get("figure") == name:
            interval = f"{value_of(name, borders['low'])} to {value_of(name, borders['high'])}"
        rows.append(
            [name_of(name), value_of(name, value), value_of(name, before.get(name)), interval]
        )
    title = f"Figures on {split}: {scores.get('measure')}, {counted(scores.get('rows'))} rows"
    note = [paragraph(str(scores["note"]), "dim")] if scores.get("note") else []
    return [heading(title), table(["", "after", "before", "95\u00a0% interval"], rows), *note]
