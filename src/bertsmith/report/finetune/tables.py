"""Tables of metrics: splits and baselines, seeds, folds, classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import folded, heading, paragraph, subheading, table
from bertsmith.report.elements.values import as_dict, as_dicts, as_float, part
from bertsmith.report.finetune.figures import (
    NONE,
    baseline_name,
    counted,
    fraction,
    name_of,
    value_of,
)

MOST_CLASSES = 1_000
FEW_CLASSES = 25
WEAKEST = 15


def figure_table(record: dict[str, Any]) -> list[Markup]:
    """Every metric of every split, and of the baselines."""
    splits = [name for name in ("dev", "test") if part(record, name, "figures")]
    if not splits:
        return []
    columns: list[tuple[str, dict[str, Any]]] = []
    for split in splits:
        columns.append((split, part(record, split, "figures")))
        for key, values in part(record, "baselines", split).items():
            columns.append((f"{split}: {baseline_name(record.get('task'), key)}", as_dict(values)))
    names = dict.fromkeys(name for _, values in columns for name in values)
    rows = [[name_of(name), *(value_of(name, v.get(name)) for _, v in columns)] for name in names]
    rows.append(["rows", *(counted(part(record, name).get("rows")) for name, _ in columns)])
    return [heading("Metrics"), table(["", *(name for name, _ in columns)], rows)]


def repeated_runs(record: dict[str, Any]) -> list[Markup]:
    """Seeds and folds: the variance of the metrics."""
    seeds, folds = record.get("seeds"), part(record, "folds")
    chosen = record.get("chosen")
    holds = "" if chosen is None else f" The folder holds the model of seed {chosen}."
    return [
        *_runs("seed", seeds, record, lambda runs, names: _moved(runs, names) + holds),
        *_runs(
            "fold",
            folds.get("runs") or record.get("folds"),
            folds,
            lambda runs, names: "Each row is scored by the model that was not trained on it.",
        ),
    ]


def _runs(
    kind: str,
    given: object,
    summary: dict[str, Any],
    words: Callable[[list[dict[str, Any]], list[str]], str],
) -> list[Markup]:
    """A table with a row per run, the variance, and the metrics of all rows together."""
    runs = as_dicts(given)
    if not runs:
        return []
    names = list(dict.fromkeys(name for run in runs for name in part(run, "figures")))
    rows = [*_rows(runs, names, kind), *_spread(part(summary, "interval"), names)]
    whole = part(summary, "figures")
    if whole:
        rows.append(["all rows together", *(value_of(n, whole.get(n)) for n in names)])
    return [
        heading(f"{kind.capitalize()}s"),
        table([kind, *map(name_of, names)], rows),
        paragraph(words(runs, names), "dim"),
    ]


def _rows(runs: Sequence[dict[str, Any]], names: Sequence[str], key: str) -> list[list[str]]:
    return [
        [
            str(run.get(key, number)),
            *(value_of(name, part(run, "figures").get(name)) for name in names),
        ]
        for number, run in enumerate(runs, start=1)
    ]


def _spread(summary: dict[str, Any], names: Sequence[str]) -> list[list[str]]:
    """Mean, deviation and confidence interval of each metric, where they are known."""
    rows = []
    for key in ("mean", "deviation"):
        cells = [value_of(name, part(summary, name).get(key)) for name in names]
        if any(cell != NONE for cell in cells):
            rows.append([key, *cells])
    cells = []
    for name in names:
        low, high = (value_of(name, part(summary, name).get(key)) for key in ("low", "high"))
        cells.append(NONE if NONE in (low, high) else f"{low} to {high}")
    return [*rows, ["95 % interval", *cells]] if any(c != NONE for c in cells) else rows


def _moved(runs: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    main = names[0] if names else ""
    values = [as_float(part(run, "figures").get(main)) for run in runs]
    known = [value for value in values if math.isfinite(value)]
    if len(known) < 2:
        return "A single seed gives no estimate of the variance."
    return (
        f"These {len(known)} runs differ in the seed only: {name_of(main)} ranges from "
        f"{value_of(main, min(known))} to {value_of(main, max(known))}."
    )


def class_table(proof: dict[str, Any]) -> list[Markup]:
    """Precision, recall and F1 of each class; of many, the weakest first and all on request."""
    classes = as_dicts(proof.get("classes"))
    if not classes:
        return []
    if len(classes) <= FEW_CLASSES:
        return [subheading("Metrics per class"), _classes(classes)]
    met = [one for one in classes if as_float(one.get("support")) > 0]
    weakest = sorted(met, key=lambda one: as_float(one.get("f1")))[:WEAKEST]
    sections = [subheading(f"The {len(weakest)} weakest classes"), _classes(weakest)]
    sections.append(folded(f"All {len(classes):,} classes", [_classes(classes[:MOST_CLASSES])]))
    if len(classes) > MOST_CLASSES:
        words = f"The page shows {MOST_CLASSES:,} of {len(classes):,}; proof.json has all."
        sections.append(paragraph(words, "dim"))
    return sections


def _classes(classes: Sequence[dict[str, Any]]) -> Markup:
    extra = [
        (key, name)
        for key, name in (("average_precision", "average precision"), ("threshold", "threshold"))
        if any(key in one for one in classes)
    ]
    rows = []
    for one in classes:
        shares = [fraction(one.get(key)) for key in ("precision", "recall", "f1")]
        counts = [counted(one.get(key)) for key in ("support", "predicted")]
        more = [fraction(one.get(key)) for key, _ in extra]
        rows.append([str(one.get("label")), *shares, *counts, *more])
    header = ["", "precision", "recall", "F1", "support", "predicted"]
    return table([*header, *(name for _, name in extra)], rows)
