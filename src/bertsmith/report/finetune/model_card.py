"""The model card (README.md): a YAML header that model hubs read, then plain words."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

from bertsmith.labeled.example import TARGETS
from bertsmith.report.elements.markdown import table, words
from bertsmith.report.elements.values import as_dict, as_float, as_list, duration, part
from bertsmith.report.elements.yaml_text import yaml_lines
from bertsmith.report.finetune.card_header import PUBLISHED, base_model, card_header
from bertsmith.report.finetune.figures import baseline_name, name_of, percent, plural, said
from bertsmith.report.finetune.overview import file_names, rounds
from bertsmith.report.finetune.summary import BEATEN, headline, is_beaten, judged_split, main_figure
from bertsmith.tasks.kinds import TASKS

SHOWN_LABELS = 50


def model_card(record: dict[str, Any], *, name: str | None = None) -> str:
    """README.md of a record (proof.json); without a name, the model it started from gives it."""
    name = name or _own_name(record)
    header = ["---", *yaml_lines(card_header(record, name)), "---"]
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


def _first_words(record: dict[str, Any]) -> list[str]:
    task = str(record.get("task"))
    base = base_model(record)
    if not PUBLISHED.fullmatch(base):
        base = PurePath(base).name  # the folders of somebody's disk are nobody's business
    title = TASKS[task].title if task in TASKS else words(task)
    first = f"A model for {title}"
    first += f", fine-tuned from {words(base)}." if base else "."
    summary = headline(record)
    return [first, f"**{words(summary)}**"] if summary else [first]


def _figures(record: dict[str, Any]) -> list[str]:
    split = judged_split(record)
    if split is None:
        return []
    known = part(record, "baselines", split)
    columns = [part(record, split, "figures"), part(known, "majority"), part(known, "words")]
    rows = [
        [words(name_of(name)), *(words(said(name, column.get(name))) for column in columns)]
        for name in columns[0]
    ]
    names = [baseline_name(record.get("task"), key) for key in ("majority", "words")]
    header = [f"on {split}", "this model", *names]
    lines = ["## Figures", "\n".join(table(header, rows))]
    main = main_figure(part(record, split))
    seeds = part(record, "interval", main)
    if math.isfinite(as_float(seeds.get("mean"))):
        count = len(as_list(record.get("seeds")))
        spread = f"{said(main, seeds.get('low'))} to {said(main, seeds.get('high'))}"
        lines.append(
            f"Over {plural(count, 'seed')}, {words(name_of(main))} is "
            f"{words(said(main, seeds.get('mean')))} on dev (95 % interval {words(spread)})."
        )
    lines.append("`report.html` shows what stands behind them, `proof.json` has it as numbers.")
    return lines


def _labels(record: dict[str, Any]) -> list[str]:
    split = judged_split(record)
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
        f"For {origin}. On other kinds of text the figures above say nothing: measure first, with "
        "`bertsmith evaluate`.",
    ]


def _training(record: dict[str, Any]) -> list[str]:
    told, rows = part(record, "training"), part(record, "data", "rows")
    found = []
    if rows:
        parts = ", ".join(f"{words(name)} {as_float(n):,.0f}" for name, n in rows.items())
        found.append(f"Rows: {parts}.")
    steps = as_float(told.get("steps"))
    if math.isfinite(steps):
        epochs = as_float(told.get("epochs"))
        more = f" ({rounds(epochs)})" if math.isfinite(epochs) else ""
        took = as_float(told.get("seconds"))
        time = f" in {duration(took)}" if math.isfinite(took) else ""
        found.append(f"{plural(steps, 'step')}{more}{time}; the best weights on dev were kept.")
    rate = as_float(told.get("rate"))
    if math.isfinite(rate):
        found.append(f"Learning rate: {rate:g}.")
    for key, name in (("precision", "Precision"), ("threads", "Threads")):
        if told.get(key):
            found.append(f"{name}: {words(told[key])}.")
    reads = part(record, "head").get("reads")
    if reads:
        found.append(f"The head reads {words(reads)}.")
    if record.get("regulariser"):
        found.append(f"Regulariser: {words(record['regulariser'])}.")
    if record.get("bertsmith"):
        found.append(f"Made with bertsmith {words(record['bertsmith'])}.")
    return ["## Training", " ".join(found)] if found else []


def _limits(record: dict[str, Any]) -> list[str]:
    """What the record itself says against the model."""
    split = judged_split(record)
    found = [BEATEN] if is_beaten(record) else []
    cut = part(record, split or "", "truncation")
    if as_float(cut.get("rows_cut")) > 0:
        share = percent(cut.get("share"))
        found.append(f"Long texts are cut: {words(share)} of the {split} rows lost their end.")
    leaks = as_float(part(record, "survey", "leaks").get("count"))
    if leaks > 0:
        found.append(f"{plural(leaks, 'row')} stand in two splits, which flatters the figures.")
    error = as_float(part(record, split or "", "calibration").get("ece"))
    if math.isfinite(error):
        away = words(percent(error))
        found.append(f"Confidence and truth lie {away} apart on average (calibration error).")
    if split == "dev":
        found.append("There was no test split: the dev rows also chose the best weights.")
    classes = [as_dict(one) for one in as_list(part(record, split or "").get("classes"))]
    weak = [one for one in classes if as_float(one.get("support")) > 0]
    if len(weak) > 1:
        worst = min(weak, key=lambda one: as_float(one.get("f1")))
        found.append(
            f"Weakest class: {words(worst.get('label'))} (F1 {words(percent(worst['f1']))})."
        )
    return ["## Limits", "\n".join(f"- {line}" for line in found)] if found else []


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
    if part(record, "head").get("kind") == "own":
        return (
            "In transformers, `config.json`, `model.safetensors` and the tokenizer files load as "
            "an encoder; the head, in `task_head.safetensors`, is one that transformers does not "
            "have."
        )
    return (
        "`config.json`, `model.safetensors` and the tokenizer files load in transformers, too, "
        "where it has this architecture."
    )


def _own_name(record: dict[str, Any]) -> str:
    base = PurePath(base_model(record)).name or "bert"
    return f"{base}-{record['task']}" if record.get("task") else base
