"""The model card (README.md): a YAML header that model hubs read, then Markdown."""

from __future__ import annotations

import math
import re
from pathlib import PurePath
from typing import Any

from bertsmith.labeled.example import TARGETS
from bertsmith.report.elements.markdown import table, words, yaml_lines
from bertsmith.report.elements.values import as_dict, as_dicts, as_float, as_list, part
from bertsmith.report.finetune.figures import (
    baseline_name,
    fraction,
    name_of,
    percent,
    plural,
    value_of,
)
from bertsmith.report.finetune.overview import (
    BEATEN,
    file_names,
    headline,
    is_beaten,
    main_metric,
    only_here,
    reported_split,
    run_facts,
)
from bertsmith.tasks.kinds import TASKS

HUB_METRICS = {
    "subset_accuracy": "accuracy",
    "mcc": "matthews_correlation",
    "spearman": "spearmanr",
    "pearson": "pearsonr",
    "exact": "exact_match",
}
CODE = re.compile("[a-z]{2,3}")  # ISO 639, as model hubs read it
PUBLISHED = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
SHOWN_LABELS = 50
FIRST = ("task", "base model")  # in the first sentence, without local paths


def model_card(record: dict[str, Any], *, name: str | None = None) -> str:
    """README.md of a record (proof.json); the default name comes from the base model."""
    name = name or _own_name(record)
    header = ["---", *yaml_lines(_header(record, name)), "---"]
    body = [
        f"# {words(name)}",
        *_first_words(record),
        *_figures(record),
        *_labels(record),
        *_use(record),
        *_training(record),
        *_limits(record),
        "## Load it",
        *_loading(record),
    ]
    return "\n".join(header) + "\n\n" + "\n\n".join(body) + "\n"


def _header(record: dict[str, Any], name: str) -> dict[str, Any]:
    """The metadata that model hubs read: language, license, base model, metrics."""
    task = str(record.get("task"))
    header: dict[str, Any] = {}
    language = record.get("language") or _spec(record).get("language")
    if language and CODE.fullmatch(str(language)):  # else only the script is known
        header["language"] = [str(language)]
    if record.get("license"):
        header["license"] = str(record["license"])
    header["library_name"] = "bertsmith"
    header["tags"] = ["bertsmith", "bert", *([task] if task in TASKS else [])]
    if task in TASKS:
        header["pipeline_tag"] = TASKS[task].pipeline
    base = _base_model(record)
    if PUBLISHED.fullmatch(base):  # not a local path
        header["base_model"] = base
    split = reported_split(record)
    if split is not None:
        figures = part(record, split, "figures")
        header["metrics"] = list(dict.fromkeys(_metric(figure) for figure in figures))
        header["model-index"] = [{"name": name, "results": _results(record)}]
    return header


def _results(record: dict[str, Any]) -> list[dict[str, Any]]:
    task = str(record.get("task"))
    kind = TASKS.get(task)
    results = []
    for split in ("test", "dev"):
        figures = part(record, split, "figures")
        if not figures:
            continue
        metrics = [
            {"type": _metric(key), "name": name_of(key), "value": round(as_float(value), 4)}
            for key, value in figures.items()
            if math.isfinite(as_float(value))
        ]
        data = file_names(record) or "local data"
        results.append(
            {
                "task": {
                    "type": kind.pipeline if kind else "other",
                    "name": kind.title if kind else task,
                },
                "dataset": {"name": data, "type": "local", "split": split},
                "metrics": metrics,
            }
        )
    return [one for one in results if one["metrics"]]


def _metric(figure: str) -> str:
    return HUB_METRICS.get(figure, "f1" if figure.startswith("f1") else figure)


def _base_model(record: dict[str, Any]) -> str:
    """The model that training started from."""
    model = record.get("model")
    return str(as_dict(model).get("name") or "") if isinstance(model, dict) else str(model or "")


def _spec(record: dict[str, Any]) -> dict[str, Any]:
    """The data spec of the only file, or of the training file."""
    spec = part(record, "data", "spec")
    return part(spec, "train") or spec


def _first_words(record: dict[str, Any]) -> list[str]:
    task = str(record.get("task"))
    base = _base_model(record)
    if not PUBLISHED.fullmatch(base):
        base = PurePath(base).name  # local paths are private
    title = TASKS[task].title if task in TASKS else words(task)
    first = f"A model for {title}"
    first += f", fine-tuned from {words(base)}." if base else "."
    summary = headline(record)
    return [first, f"**{words(summary)}**"] if summary else [first]


def _figures(record: dict[str, Any]) -> list[str]:
    split = reported_split(record)
    if split is None:
        return []
    known = part(record, "baselines", split)
    columns = [part(record, split, "figures"), part(known, "majority"), part(known, "words")]
    rows = [
        [
            words(name_of(name)),
            *(words(value_of(name, column.get(name))) for column in columns),
        ]
        for name in columns[0]
    ]
    names = [baseline_name(record.get("task"), key) for key in ("majority", "words")]
    header = [f"on {split}", "this model", *names]
    lines = ["## Metrics", "\n".join(table(header, rows))]
    main = main_metric(part(record, split))
    seeds = part(record, "interval", main)
    if math.isfinite(as_float(seeds.get("mean"))):
        count = len(as_list(record.get("seeds")))
        spread = f"{value_of(main, seeds.get('low'))} to {value_of(main, seeds.get('high'))}"
        lines.append(
            f"Over {plural(count, 'seed')}, {words(name_of(main))} is "
            f"{words(value_of(main, seeds.get('mean')))} on dev (95 % interval "
            f"{words(spread)})."
        )
    lines.append("Details are in `report.html`, all numbers in `proof.json`.")
    return lines


def _labels(record: dict[str, Any]) -> list[str]:
    split = reported_split(record)
    labels = [
        as_dict(one).get("label") for one in as_list(part(record, split or "").get("classes"))
    ]
    kind = TASKS.get(str(record.get("task")))
    if not labels or (kind and TARGETS[kind.target].choices):
        return []
    shown = ", ".join(words(label) for label in labels[:SHOWN_LABELS])
    more = f" and {len(labels) - SHOWN_LABELS:,} more" if len(labels) > SHOWN_LABELS else ""
    return ["## Labels", f"{plural(len(labels), 'label')}: {shown}{more}"]


def _use(record: dict[str, Any]) -> list[str]:
    data = file_names(record)
    origin = f"texts like those of {words(data)}" if data else "texts like those it was trained on"
    return [
        "## Intended use",
        f"For {origin}. The metrics above do not carry over to other kinds of text: measure with "
        "`bertsmith evaluate` first.",
    ]


def _training(record: dict[str, Any]) -> list[str]:
    facts = run_facts(record)
    lines = [f"- {name}: {words(value)}" for name, value in facts if name not in FIRST]
    return ["## Training", "\n".join(lines)] if lines else []


def _limits(record: dict[str, Any]) -> list[str]:
    """Known weaknesses, from the record."""
    split = reported_split(record)
    limits = [BEATEN] if is_beaten(record) else []
    cut = part(record, split or "", "truncation")
    if as_float(cut.get("rows_cut")) > 0:
        share = percent(cut.get("share"))
        limits.append(f"Long texts are truncated: {words(share)} of the {split} rows.")
    leaks = as_float(part(record, "survey", "leaks").get("count"))
    if leaks > 0:
        limits.append(
            f"{plural(leaks, 'row')} in two splits (leakage): the metrics are too optimistic."
        )
    error = as_float(part(record, split or "", "calibration").get("ece"))
    if math.isfinite(error):
        limits.append(f"Expected calibration error: {words(fraction(error))}.")
    if split == "dev":
        limits.append("There was no test split, and the dev rows also selected the best weights.")
    classes = as_dicts(part(record, split or "").get("classes"))
    weak = [one for one in classes if as_float(one.get("support")) > 0]
    if len(weak) > 1:
        worst = min(weak, key=lambda one: as_float(one.get("f1")))
        limits.append(
            f"Weakest class: {words(worst.get('label'))} (F1 {words(fraction(worst['f1']))})."
        )
    return ["## Limits", "\n".join(f"- {line}" for line in limits)] if limits else []


def _loading(record: dict[str, Any]) -> list[str]:
    kind = TASKS.get(str(record.get("task")))
    texts = kind.sample_call if kind else '["a text"]'
    code = f'import bertsmith\n\nmodel = bertsmith.load("DIR")\nprint(model.predict({texts}))'
    return [
        f"```python\n{code}\n```",
        "```sh\nbertsmith predict DIR FILE --out answers.jsonl\nbertsmith evaluate DIR FILE\n```",
        _elsewhere(record),
    ]


def _elsewhere(record: dict[str, Any]) -> str:
    elsewhere = only_here(record)
    if elsewhere:
        return (
            f"{words(elsewhere)} Otherwise it would draw a random head in place of the one in "
            "`task_head.safetensors`. As an encoder (`AutoModel`), the folder loads there."
        )
    return (
        "`config.json`, `model.safetensors` and the tokenizer files load in transformers, too, "
        "where it has this architecture."
    )


def _own_name(record: dict[str, Any]) -> str:
    base = PurePath(_base_model(record)).name or "bert"
    return f"{base}-{record['task']}" if record.get("task") else base
