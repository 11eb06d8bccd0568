"""The top of the report: headline, bars of model and baselines, facts of the run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import element, facts, paragraph
from bertsmith.report.elements.values import as_dict, as_float, as_list, part
from bertsmith.report.finetune.figures import (
    BASELINES,
    CORRELATIONS,
    UNBOUNDED,
    baseline_name,
    counted,
    main_name,
    plural,
    value_of,
)
from bertsmith.tasks.kinds import TASKS
from bertsmith.wording import duration

BEATEN = "A baseline is at least as good: this model is not worth its cost."


def reported_split(record: dict[str, Any]) -> str | None:
    """The split that is reported first: test, else dev, which also selected the checkpoint."""
    return next((name for name in ("test", "dev") if part(record, name, "figures")), None)


def main_metric(proof: dict[str, Any]) -> str:
    """The name of the main metric."""
    figures = as_dict(proof.get("figures"))
    return str(proof.get("main") or next(iter(figures), ""))


def headline(record: dict[str, Any]) -> str:
    """One sentence: the main metric, the number of rows, the baselines; "" without metrics."""
    split = reported_split(record)
    if split is None:
        return ""
    proof = part(record, split)
    main = main_metric(proof)
    value = value_of(main, part(proof, "figures").get(main))
    name = main_name(record.get("task"), main)
    first = f"{name[:1].upper()}{name[1:]} {value}"
    sentence = f"{first} on {plural(proof.get('rows'), f'{split} row')}"
    baselines = _baselines(record, split, main)
    return f"{sentence}; {', '.join(baselines)}." if baselines else f"{sentence}."


def is_beaten(record: dict[str, Any]) -> bool:
    """Whether a baseline is at least as good as the model by the main metric."""
    split = reported_split(record)
    if split is None:
        return False
    main = main_metric(part(record, split))
    own = as_float(part(record, split, "figures").get(main))
    baselines = (
        as_float(as_dict(one).get(main)) for one in part(record, "baselines", split).values()
    )
    return any(other <= own if main in UNBOUNDED else other >= own for other in baselines)


def only_here(record: dict[str, Any]) -> str:
    """A sentence on a head that transformers does not have; "" if it does."""
    head = part(record, "head")
    if head.get("kind") != "own":
        return ""
    gaps = ", ".join(map(str, as_list(head.get("gaps")))) or "its own shape"
    way_out = " --set vector.pooling=published trains one that it has." if "pool" in gaps else ""
    return (
        f"transformers has no class for this head ({gaps}) and refuses the folder as a classifier."
        f"{way_out}"
    )


def _baselines(record: dict[str, Any], split: str, main: str) -> list[str]:
    """Baselines with their main metric."""
    known = part(record, "baselines", split)
    baselines = []
    for key in BASELINES:
        value = as_float(part(known, key).get(main))
        if math.isfinite(value):
            name = baseline_title(part(record, split), record.get("task"), key, part(known, key))
            baselines.append(f"{name} {value_of(main, value)}")
    return baselines


def baseline_title(proof: dict[str, Any], task: object, key: str, figures: dict[str, Any]) -> str:
    """The name of a baseline, with the label of the majority class where that is known."""
    name, rows = baseline_name(task, key), as_float(proof.get("rows"))
    if key == "majority" and main_metric(proof) == "accuracy" and rows > 0:
        for one in as_list(proof.get("classes")):
            share = as_float(as_dict(one).get("support")) / rows
            if abs(share - as_float(figures.get("accuracy"))) < 1e-9:
                return f"{name} (“{as_dict(one).get('label')}”)"
    return name


def overview(record: dict[str, Any]) -> list[Markup]:
    """Headline, bars, confidence interval, facts."""
    sentence = headline(record)
    sections = [paragraph(sentence, "lead")] if sentence else []
    sections += _bars(record)
    if is_beaten(record):
        sections.append(paragraph(BEATEN))
    sections += _interval(record)
    known = list(run_facts(record))
    return [*sections, facts(known)] if known else sections


def _bars(record: dict[str, Any]) -> list[Markup]:
    """The main metric as bars, if it is bounded."""
    split = reported_split(record)
    if split is None:
        return []
    main = main_metric(part(record, split))
    if main in UNBOUNDED:
        return []
    known = part(record, "baselines", split)
    rows = [("this model", part(record, split, "figures").get(main), "own")]
    task = record.get("task")
    rows += [(baseline_name(task, key), part(known, key).get(main), "") for key in BASELINES]
    bars = [
        (name, min(1.0, max(0.0, as_float(v))), value_of(main, v), kind)
        for name, v, kind in rows
        if math.isfinite(as_float(v))
    ]
    return [element("elements", "bars", bars)] if bars else []


def _interval(record: dict[str, Any]) -> list[Markup]:
    split = reported_split(record)
    borders = part(record, split, "interval") if split else {}
    low, high = as_float(borders.get("low")), as_float(borders.get("high"))
    if split is None or not (math.isfinite(low) and math.isfinite(high)):
        return []
    main = main_metric(part(record, split))
    name = main_name(record.get("task"), main)
    interval = f"{value_of(main, low)} to {value_of(main, high)}"
    words = f"95\u00a0% confidence interval of {name} (bootstrap): {interval}."
    if main in CORRELATIONS:
        words += " A correlation of 1 is perfect, 0 is chance level."
    if split == "dev":
        words += " The best weights were chosen on these rows: expect slightly less on new ones."
    return [paragraph(words, "dim")]


def run_facts(record: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What was trained on what, how long and how, in words."""
    task = record.get("task")
    if task:
        yield "task", f"{task}: {TASKS[str(task)].title}" if str(task) in TASKS else str(task)
    model = record.get("model")
    if model:
        yield "base model", str(part(record, "model").get("name") or model)
    files = file_names(record)
    if files:
        yield "data", files
    rows = part(record, "data", "rows")
    if rows:
        yield "rows", ", ".join(f"{name} {counted(count)}" for name, count in rows.items())
    yield from _training(part(record, "training"))
    reads = part(record, "head").get("reads")
    if reads:
        yield "head input", str(reads)
    if record.get("regularization"):
        yield "regularization", str(record["regularization"])
    if record.get("bertsmith"):
        yield "made with", f"bertsmith {record['bertsmith']}"


def file_names(record: dict[str, Any]) -> str:
    """The names of the data files, without local paths."""
    files = part(record, "data").get("files")
    named = part(record, "data", "files")
    values = list(named.values()) if named else as_list(files) or ([files] if files else [])
    return ", ".join(dict.fromkeys(PurePath(str(value)).name for value in values))


def _training(training: dict[str, Any]) -> Iterator[tuple[str, str]]:
    steps, epochs = as_float(training.get("steps")), as_float(training.get("epochs"))
    if math.isfinite(steps):
        noun = "epoch" if epochs == 1 else "epochs"
        more = f", {epochs:g} {noun}" if math.isfinite(epochs) else ""
        best = as_float(training.get("best_step"))
        chosen = f"; best weights at step {counted(best)}" if math.isfinite(best) else ""
        if training.get("best_weights") == "average":
            chosen = "; best weights: the average of the last steps"
        yield "training", f"{plural(steps, 'step')}{more}{chosen}"
    rate = as_float(training.get("rate"))
    if math.isfinite(rate):
        yield "learning rate", f"{rate:g}"
    seconds = as_float(training.get("seconds"))
    if math.isfinite(seconds):
        speed = as_float(training.get("tokens_per_second"))
        more = f", {counted(speed)} tokens per second" if math.isfinite(speed) else ""
        yield "time", f"{duration(seconds)}{more}"
    machine = [f"{training['precision']}" if training.get("precision") else ""]
    machine.append(plural(training["threads"], "thread") if training.get("threads") else "")
    if any(machine):
        yield "precision", ", ".join(filter(None, machine))
