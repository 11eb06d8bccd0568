"""The header of a model card: what model hubs read."""

from __future__ import annotations

import math
import re
from typing import Any

from bertsmith.report.elements.values import as_dict, as_float, part
from bertsmith.report.finetune.figures import name_of
from bertsmith.report.finetune.overview import file_names
from bertsmith.report.finetune.summary import judged_split
from bertsmith.tasks.kinds import TASKS

METRICS = {
    "accuracy": "accuracy",
    "subset_accuracy": "accuracy",
    "mcc": "matthews_correlation",
    "spearman": "spearmanr",
    "pearson": "pearsonr",
    "exact": "exact_match",
    "mse": "mse",
    "precision": "precision",
    "recall": "recall",
    "average_precision": "average_precision",
}
CODE = re.compile("[a-z]{2,3}")  # ISO 639, as model hubs read it
PUBLISHED = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def card_header(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Language, license, base model and the figures as a model index."""
    task = str(record.get("task"))
    found: dict[str, Any] = {}
    language = record.get("language") or _spec(record).get("language")
    if language and CODE.fullmatch(str(language)):  # of other texts only the script is known
        found["language"] = [str(language)]
    if record.get("license"):
        found["license"] = str(record["license"])
    found["library_name"] = "bertsmith"
    found["tags"] = ["bertsmith", "bert", *([task] if task in TASKS else [])]
    if task in TASKS:
        found["pipeline_tag"] = TASKS[task].pipeline
    base = base_model(record)
    if PUBLISHED.fullmatch(base):  # a folder on somebody's disk is no model to link to
        found["base_model"] = base
    split = judged_split(record)
    if split is not None:
        figures = part(record, split, "figures")
        found["metrics"] = list(dict.fromkeys(_metric(figure) for figure in figures))
        found["model-index"] = [{"name": name, "results": _results(record)}]
    return found


def _results(record: dict[str, Any]) -> list[dict[str, Any]]:
    task = str(record.get("task"))
    kind = TASKS.get(task)
    found = []
    for split in ("test", "dev"):
        figures = part(record, split, "figures")
        if not figures:
            continue
        metrics = [
            {"type": _metric(key), "name": name_of(key), "value": round(as_float(value), 6)}
            for key, value in figures.items()
            if math.isfinite(as_float(value))
        ]
        data = file_names(record) or "local data"
        found.append(
            {
                "task": {
                    "type": kind.pipeline if kind else "other",
                    "name": kind.title if kind else task,
                },
                "dataset": {"name": data, "type": "local", "split": split},
                "metrics": metrics,
            }
        )
    return [one for one in found if one["metrics"]]


def _metric(figure: str) -> str:
    return METRICS.get(figure, "f1" if figure.startswith("f1") else figure)


def base_model(record: dict[str, Any]) -> str:
    """The model that training started from."""
    model = record.get("model")
    return str(as_dict(model).get("name") or "") if isinstance(model, dict) else str(model or "")


def _spec(record: dict[str, Any]) -> dict[str, Any]:
    """How the data was read: of one file, or of the training file."""
    spec = part(record, "data", "spec")
    return part(spec, "train") or spec
