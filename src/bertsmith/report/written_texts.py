"""The page of a model that writes: figures, baselines, and texts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import facts, heading, paragraph, table, texts_table
from bertsmith.report.elements.values import as_list, part
from bertsmith.report.finetune.overview import run_facts
from bertsmith.report.finetune.tables import repeated_runs
from bertsmith.report.finetune.training_sections import curve_section, settings_section
from bertsmith.report.result import SIDES, ResultSide, ResultView
from bertsmith.wording import counted

FIGURES = {
    "rouge_l": "ROUGE-L",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "bleu": "BLEU-4",
    "chrf": "chrF",
    "exact": "exact match",
    "distinct_1": "distinct-1",
    "distinct_2": "distinct-2",
}
BASELINES = {"copy": "copy of the source", "first_sentence": "its first sentence"}
SHOWN = 3  # texts that a terminal shows
WIDTH = 60  # characters of each
READ = 0.3  # nats that another source costs a model that reads its own


def writing_sections(record: dict[str, Any]) -> list[Markup]:
    """The sections of a record."""
    sections = [facts([*run_facts(record), *row_notes(record)]), *_losses(record)]
    for name in ("test", "dev"):
        if record.get(name):
            sections += _side(name, record[name])
    sections += repeated_runs(record)
    return [*sections, *curve_section(record), *settings_section(record)]


def row_notes(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What became of the rows, as facts."""
    return [("note", str(note)) for note in as_list(part(record, "data").get("notes"))]


def writing_result(record: Mapping[str, Any]) -> ResultView:
    """Losses, figures next to the baselines, some texts."""
    losses = [
        f"{name} loss on dev: {one['dev']:.3f} nats (without looking at the texts: "
        f"{one['usual']:.3f})"
        for name, one in record["losses"].items()
        if one["dev"] is not None
    ]
    sides = [
        writing_side(
            record[name],
            f"{name}, {record[name]['rows']:,} of {counted(record[name]['of'], 'row')}",
        )
        for name in SIDES
        if record.get(name)
    ]
    shown = (record.get("test") or record.get("dev") or {}).get("examples") or ()
    texts = [
        f"  {name:<10}{' '.join(one[name].split())[:WIDTH]}"
        for one in shown[:SHOWN]
        for name in ("source", "written", "reference")
    ]
    return ResultView(before=losses, sides=sides, after=texts)


def writing_side(side: Mapping[str, Any], title: str) -> ResultSide:
    """Figures of written rows next to simple ways, and whether the source is read."""
    columns = (side["figures"], *(side["baselines"][one] for one in BASELINES))
    interval, main = side["intervals"][side["main"]], FIGURES[side["main"]]
    remarks = [
        f"95 % interval over rows: {main} {interval['low']:.3f} to {interval['high']:.3f}",
        reading_line(side),
    ]
    if side["sources_cut"]:
        remarks.append(f"truncated: {side['sources_cut']:,} sources")
    return ResultSide(
        title=title,
        header=["", "model", *BASELINES.values()],
        rows=[
            [name, *(f"{column[key]:.3f}" for column in columns)] for key, name in FIGURES.items()
        ],
        remarks=remarks,
    )


def _losses(record: Mapping[str, Any]) -> list[Markup]:
    """The dev losses next to those of a model that does not look at the texts."""
    rows = [
        [name, _number(one["dev"]), _number(one["usual"])] for name, one in record["losses"].items()
    ]
    return [
        heading("Losses of the dev rows"),
        paragraph(
            "In nats: per target token for writing, per text for similarity. Without looking: the "
            "entropy of single target tokens, and the log of the number of candidates."
        ),
        table(["loss", "model", "without looking"], rows),
    ]


def reading_line(side: Mapping[str, Any]) -> str:
    """Whether the source is read, by what another one costs."""
    found = side.get("wrong_source")
    if not found:
        return "All sources are the same text, so whether they are read cannot be measured."
    verdict = "the source is read" if found["costs"] >= READ else "the source is hardly read"
    return (
        f"With the source of another row a target token costs {found['costs']:+.2f} nats "
        f"({found['own']:.2f} with its own, {found['other']:.2f} with another): {verdict}."
    )


def _side(name: str, side: Mapping[str, Any]) -> list[Markup]:
    simple = side["baselines"]
    rows = []
    for key, title in FIGURES.items():
        interval = side["intervals"].get(key)
        spread = "" if interval is None else f"{interval['low']:.3f} to {interval['high']:.3f}"
        others = [_number(simple[one].get(key)) for one in BASELINES]
        rows.append([title, _number(side["figures"].get(key)), spread, *others])
    shown = [
        (one["source"], one["written"], one["reference"]) for one in side.get("examples") or ()
    ]
    return [
        heading(f"Written {name} rows"),
        paragraph(f"{side['rows']:,} of {side['of']:,} rows, written greedily."),
        table(["figure", "model", "95 % interval", *BASELINES.values()], rows),
        paragraph(
            "From 0 to 1. Chinese characters count as words. Distinct: different n-grams per "
            "n-gram of all written texts."
        ),
        paragraph(reading_line(side)),
        texts_table(["source", "written", "reference"], shown),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
