"""The report of a training run: its curves, held-out figures and settings on one page."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bertsmith.files.atomic_file import write_staged
from bertsmith.report.elements.charts import Curve, chart, shown
from bertsmith.report.elements.page import facts, heading, page, preformatted, table
from bertsmith.report.elements.values import as_float, part

log = logging.getLogger(__name__)

REPORT = "report.html"
Row = dict[str, Any]


def write_report(folder: Path, title: str) -> Path:
    """Write report.html into the folder of a run."""
    path = folder / REPORT
    rows = read_log(folder / "log.jsonl")
    recipe = folder / "recipe.toml"
    settings = recipe.read_text(encoding="utf-8") if recipe.is_file() else ""
    write_staged(path, curves_page(rows, title=title, settings=settings).encode())
    return path


def read_log(path: Path) -> list[Row]:
    """The lines of a run's log; one that a killed process left half written is passed over."""
    rows: list[Row] = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError:
                log.info("%s, line %d is not whole and is left out", path, number)
                continue
            if isinstance(row, dict):
                rows.append(row)
    return rows


def curves_page(rows: Sequence[Row], *, title: str, settings: str = "") -> str:
    """The whole page from the rows of a log."""
    train = [row for row in rows if row.get("kind") == "train"]
    held_out = [row for row in rows if row.get("kind") in ("eval", "final")]
    sections = [facts(_summary(train, rows)), *_figures(rows), *_stages(rows)]
    for name, key in (("Loss", "losses"), ("Accuracy", "accuracy")):
        curves = [
            *named_curves(train, key, ""),
            *named_curves(held_out, key, "held out: ", dots=True),
        ]
        sections += [heading(name), chart(curves, x_name="step")]
    for name, key in (
        ("Learning rate", "rate"),
        ("Tokens per second", "tokens_per_second"),
        ("Gradient norm before clipping", "norm"),
    ):
        curve = Curve(name=key.replace("_", " "), points=points_over_steps(train, key))
        sections += [heading(name), chart([curve], x_name="step")]
    if settings:
        sections += [heading("Settings"), preformatted(settings)]
    return page(title, sections)


def _summary(train: Sequence[Row], rows: Sequence[Row]) -> Iterable[tuple[str, object]]:
    if train:
        last = train[-1]
        yield "steps", _number(last.get("step"))
        yield "tokens", _number(last.get("tokens"))
        yield "hours", _number(as_float(last.get("seconds")) / 3600)
    for row in rows:
        if row.get("kind") == "diverged":
            yield "diverged", row.get("message")


def _figures(rows: Sequence[Row]) -> list[Markup]:
    """A table of the last held-out figures."""
    ends = [row for row in rows if row.get("kind") in ("eval", "final")]
    if not ends:
        return []
    last = ends[-1]
    parts = part(last, "losses")
    lines = [
        [
            name,
            shown(as_float(loss)),
            shown(as_float(part(last, "perplexity").get(name))),
            shown(as_float(part(last, "accuracy").get(name))),
            _number(part(last, "counts").get(name)),
        ]
        for name, loss in parts.items()
    ]
    title = f"Held-out text after {_number(last.get('step'))} steps"
    header = ["part", "loss", "perplexity", "accuracy", "predictions"]
    return [heading(title), table(header, lines)]


def _stages(rows: Sequence[Row]) -> list[Markup]:
    """The held-out figures of every part at the end of each stage of training."""
    ends = [row for row in rows if row.get("kind") == "end"]
    stages = ends[-1].get("stages") if ends else None
    if not isinstance(stages, list) or not stages:
        return []
    lines = [
        [
            stage.get("stage"),
            _number(stage.get("step")),
            name,
            shown(as_float(loss)),
            _of(stage, name),
        ]
        for stage in stages
        for name, loss in part(stage, "losses").items()
    ]
    header = ["stage learns", "step", "part", "loss", "accuracy"]
    return [heading("Held-out text at the end of each stage"), table(header, lines)]


def _of(stage: Row, name: str) -> str:
    """The accuracy of a part, as it is shown."""
    return shown(as_float(part(stage, "accuracy").get(name)))


def named_curves(rows: Sequence[Row], key: str, prefix: str, *, dots: bool = False) -> list[Curve]:
    """One curve for each name under a key."""
    names = dict.fromkeys(name for row in rows for name in part(row, key))
    return [
        Curve(
            name=f"{prefix}{name}",
            points=points_over_steps(rows, key, name),
            dots=dots,
        )
        for name in names
    ]


def points_over_steps(
    rows: Sequence[Row], key: str, name: str | None = None
) -> tuple[tuple[float, float], ...]:
    """A value of each row over its step; with `name`, that of a name under the key."""
    values = [row.get(key) if name is None else part(row, key).get(name) for row in rows]
    pairs = zip(rows, values, strict=True)
    return tuple((as_float(row.get("step")), as_float(v)) for row, v in pairs if v is not None)


def _number(value: object) -> str:
    number = as_float(value)
    return shown(number) if number == number else str(value)
