"""The page of a model that writes: figures, baselines, and texts side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertsmith.report.curves import named_curves
from bertsmith.report.elements.charts import chart
from bertsmith.report.elements.page import facts, heading, paragraph, table, texts_table
from bertsmith.report.elements.values import as_dicts

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
READ = 0.3  # nats that another source costs a model that reads its own


def writing_sections(record: Mapping[str, Any]) -> list[Markup]:
    """The sections of a record."""
    sections = [facts(_overview(record)), *loss_section(record)]
    for name in ("test", "dev"):
        if record.get(name):
            sections += _side(name, record[name])
    return [*sections, *training_curves(record)]


def loss_section(record: Mapping[str, Any]) -> list[Markup]:
    """The dev losses next to those of a model that does not look at the texts."""
    rows = [
        [name, _number(part["dev"]), _number(part["usual"])]
        for name, part in record["losses"].items()
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


def training_curves(record: Mapping[str, Any]) -> list[Markup]:
    """The losses of training and dev rows over the steps."""
    rows = as_dicts(record.get("curves"))
    train = [row for row in rows if row.get("kind") == "train"]
    held_out = [row for row in rows if row.get("kind") == "eval"]
    losses = [
        *named_curves(train, "losses", "training: "),
        *named_curves(held_out, "losses", "dev: ", dots=True),
    ]
    return [heading("Training"), chart(losses, x_name="step")] if losses else []


def _overview(record: Mapping[str, Any]) -> list[tuple[str, object]]:
    rows = record["data"]["rows"]
    training = record["training"]
    return [
        ("task", record["task"]),
        ("trained from", record["model"]),
        ("rows", ", ".join(f"{name} {count:,}" for name, count in rows.items())),
        ("steps", f"{training['steps']:,}, best after {training['best_step'] or 0:,}"),
        *(("note", note) for note in record["data"]["notes"]),
    ]


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
