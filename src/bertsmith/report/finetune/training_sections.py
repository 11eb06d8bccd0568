"""How it was trained: curves and settings."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from bertsmith.report.curves import named_curves, points_over_steps
from bertsmith.report.elements.charts import Curve, chart
from bertsmith.report.elements.page import folded, heading, paragraph, preformatted, subheading
from bertsmith.report.elements.values import as_dicts, part
from bertsmith.report.finetune.figures import name_of
from bertsmith.report.finetune.overfitting import overfitting
from bertsmith.report.finetune.overview import main_metric


def curve_section(record: dict[str, Any]) -> list[Markup]:
    """Losses, the main figure on dev, and the learning rate."""
    rows = as_dicts(record.get("curves"))
    train = [row for row in rows if row.get("kind") == "train"]
    # The last evaluation repeats the best one, unless it is the only one.
    held_out = [row for row in rows if row.get("kind") == "eval"]
    held_out = held_out or [row for row in rows if row.get("kind") == "final"]
    if not train and not held_out:
        return []
    losses = [
        *named_curves(train, "losses", "training: "),
        *named_curves(held_out, "losses", "dev: ", dots=True),
    ]
    sections = [heading("Training"), subheading("Learning curves"), chart(losses, x_name="step")]
    warning = overfitting(record)
    if warning:
        sections.append(paragraph(warning))
    main = main_metric(part(record, "dev")) or next(
        (name for row in held_out for name in part(row, "figures")), ""
    )
    figures = points_over_steps(held_out, "figures", main)
    if figures:
        curve = Curve(name=name_of(main), points=figures)
        sections += [subheading(f"On dev: {name_of(main)}"), chart([curve], x_name="step")]
    rates = points_over_steps(train, "rate")
    if rates:
        curve = Curve(name="learning rate", points=rates)
        sections.append(folded("Learning rate", [chart([curve], x_name="step")]))
    return sections


def settings_section(record: dict[str, Any]) -> list[Markup]:
    """The recipe and how the data was read, as they are in the record."""
    sections = []
    for title, settings in (
        ("Recipe", record.get("recipe")),
        ("How the data was read", part(record, "data").get("spec")),
    ):
        if settings:
            words = (
                settings
                if isinstance(settings, str)
                else json.dumps(settings, indent=2, ensure_ascii=False)
            )
            sections.append(folded(title, [preformatted(words)]))
    return [heading("Settings"), *sections] if sections else []
