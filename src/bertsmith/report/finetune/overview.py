"""The top of the report: bars of model and baselines, and the facts of the run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from bertsmith.report.elements.page import facts, paragraph, text
from bertsmith.report.elements.values import as_float, as_list, duration, part
from bertsmith.report.finetune.figures import (
    BASELINES,
    CORRELATIONS,
    NUMBERS,
    baseline_name,
    counted,
    main_name,
    plural,
    said,
)
from bertsmith.report.finetune.summary import BEATEN, headline, is_beaten, judged_split, main_figure
from bertsmith.tasks.kinds import TASKS


def overview(record: dict[str, Any]) -> list[str]:
    """The sentence, the bars, the interval, the facts."""
    said_first = headline(record)
    sections = [paragraph(said_first, "lead")] if said_first else []
    sections += _bars(record)
    if is_beaten(record):
        sections.append(paragraph(BEATEN))
    sections += _interval(record)
    known = list(_facts(record))
    return [*sections, facts(known)] if known else sections


def _bars(record: dict[str, Any]) -> list[str]:
    """The main figure as bars; a figure without an upper end has none."""
    split = judged_split(record)
    if split is None:
        return []
    main = main_figure(part(record, split))
    if main in NUMBERS:
        return []
    known = part(record, "baselines", split)
    rows = [("this model", part(record, split, "figures").get(main), "own")]
    task = record.get("task")
    rows += [(baseline_name(task, key), part(known, key).get(main), "") for key in BASELINES]
    drawn = [_bar(name, main, as_float(v), kind) for name, v, kind in rows if v is not None]
    return [f'<div class="bars">{"".join(drawn)}</div>'] if drawn else []


def _bar(name: str, main: str, value: float, kind: str) -> str:
    width = round(100 * min(1.0, max(0.0, value)), 2) if math.isfinite(value) else 0
    return (
        f'<span class="{kind}">{text(name)}</span><span class="track">'
        f'<span class="fill {kind}" style="width: {width}%"></span></span>'
        f'<span class="value {kind}">{text(said(main, value))}</span>'
    )


def _interval(record: dict[str, Any]) -> list[str]:
    split = judged_split(record)
    borders = part(record, split, "interval") if split else {}
    low, high = as_float(borders.get("low")), as_float(borders.get("high"))
    if split is None or not (math.isfinite(low) and math.isfinite(high)):
        return []
    main = main_figure(part(record, split))
    name = main_name(record.get("task"), main)
    words = f"95\u00a0% bootstrap interval of {name}: {said(main, low)} to {said(main, high)}."
    if main in CORRELATIONS:
        words += " A correlation of 1 is perfect, 0 is chance."
    if split == "dev":
        words += " The best weights were chosen on these rows: new rows may score a little lower."
    return [paragraph(words, "dim")]


def _facts(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    task = record.get("task")
    if task:
        yield "task", f"{task}: {TASKS[str(task)].title}" if str(task) in TASKS else str(task)
    model = record.get("model")
    if model:
        yield "started from", str(part(record, "model").get("name") or model)
    files = file_names(record)
    if files:
        yield "data", files
    rows = part(record, "data", "rows")
    if rows:
        yield "rows", ", ".join(f"{name} {counted(count)}" for name, count in rows.items())
    yield from _training(part(record, "training"))
    reads = part(record, "head").get("reads")
    if reads:
        yield "the head reads", str(reads)
    if record.get("regulariser"):
        yield "regulariser", str(record["regulariser"])
    if record.get("bertsmith"):
        yield "made with", f"bertsmith {record['bertsmith']}"


def file_names(record: dict[str, Any]) -> str:
    """The data files by name, without the folders of somebody's disk."""
    files = part(record, "data").get("files")
    named = part(record, "data", "files")
    values = list(named.values()) if named else as_list(files) or ([files] if files else [])
    return ", ".join(dict.fromkeys(PurePath(str(value)).name for value in values))


def _training(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    steps, epochs = as_float(told.get("steps")), as_float(told.get("epochs"))
    if math.isfinite(steps):
        more = f", {rounds(epochs)}" if math.isfinite(epochs) else ""
        best = as_float(told.get("best_step"))
        chosen = f"; best weights at step {counted(best)}" if math.isfinite(best) else ""
        if told.get("best_weights") == "average":
            chosen = "; the mean of the last weights was the best"
        yield "training", f"{plural(steps, 'step')}{more}{chosen}"
    rate = as_float(told.get("rate"))
    if math.isfinite(rate):
        yield "learning rate", f"{rate:g}"
    seconds = as_float(told.get("seconds"))
    if math.isfinite(seconds):
        speed = as_float(told.get("tokens_per_second"))
        more = f", {counted(speed)} tokens per second" if math.isfinite(speed) else ""
        yield "time", f"{duration(seconds)}{more}"
    machine = [f"{told['precision']}" if told.get("precision") else ""]
    machine.append(plural(told["threads"], "thread") if told.get("threads") else "")
    if any(machine):
        yield "computed in", ", ".join(filter(None, machine))


def rounds(epochs: float) -> str:
    """How often the training rows were read."""
    return f"{epochs:g} epoch" if epochs == 1 else f"{epochs:g} epochs"
