"""The record of a fine-tuned folder: how it was trained and evaluated, as JSON.

The report page and the model card are written from it alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertsmith import __version__
from bertsmith.evaluation.proof import baselines, prove
from bertsmith.files.strict_json import json_values, write_json
from bertsmith.labeled.example import Example
from bertsmith.labeled.split.splits import Splits
from bertsmith.runtime.answer_files import write_labeled
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor
from bertsmith.tasks.losses import CrossEntropySettings
from bertsmith.tasks.model.published import head_gaps
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.training.finetune.finetune import FinetuneJob
from bertsmith.training.finetune.recipe import FinetuneRecipe

RECORD = "proof.json"
CURVE_POINTS = 400  # of each kind of line that the record keeps
CURVES = ("train", "eval", "final")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSource:
    """How a folder was trained: what the record adds to the folder itself.

    `run` is the folder of the run that the model comes from: the job's own, or that of one of
    several. `more` are whole sections: survey, lengths, seeds, interval, folds.
    """

    job: FinetuneJob
    splits: Splits
    run: Path
    precision: str
    threads: int
    more: Mapping[str, Any] = field(default_factory=dict)


def write_record(making: RecordSource, *, device: str = "cpu") -> dict[str, Any]:
    """Evaluate the finished folder on dev and test rows, and write proof.json and predictions.

    The folder is read from the disk, so the figures are those its user gets.
    """
    out = making.job.folder
    predictor = load_predictor(out, device=device)
    sides: dict[str, Any] = {"dev": None, "test": None}
    simple: dict[str, Any] = {}
    for name, examples in (("dev", making.job.dev), ("test", making.splits.test)):
        if not examples:
            continue
        predicted = [one for _, one in predictor.stream(examples)]
        write_labeled(out / f"predictions.{name}.jsonl", examples, predicted)
        if any(example.target is not None for example in examples):
            sides[name] = prove(predictor.task, examples, predicted).to_json()
            simple[name] = baselines(making.job.task, making.job.train, examples)
    making_of = _making(making, predictor)
    record = dict(json_values({**making_of, **sides, "baselines": simple, **making.more}))
    write_json(out / RECORD, record)
    return record


def _making(making: RecordSource, predictor: ModelPredictor) -> dict[str, Any]:
    job = making.job
    gaps = head_gaps(predictor.model, predictor.lengths)
    return {
        "bertsmith": __version__,
        "task": job.task,
        "model": job.model,
        "labels": list(predictor.task.labels),
        "data": _data(job, making.splits),
        "recipe": job.recipe.model_dump(mode="json"),
        "head": head(predictor.model) | ({"gaps": gaps} if gaps else {}),
        "regularization": regularization(predictor, job.recipe),
        "training": _training(making),
        "curves": curves(making.run / "log.jsonl"),
    }


def _data(job: FinetuneJob, splits: Splits) -> dict[str, Any]:
    sides: dict[str, Sequence[Example]] = {"train": job.train, "dev": job.dev, "test": splits.test}
    spec = splits.specs.get("train")
    return {
        "files": {name: rows[0].source for name, rows in sides.items() if rows},
        "rows": {name: len(rows) for name, rows in sides.items()},
        "rejected": {n: a.rows_rejected for n, a in splits.accounts.items() if a.rows_rejected},
        "notes": list(splits.notes),
        "spec": spec.to_values() if spec is not None else None,
    }


def _training(making: RecordSource) -> dict[str, Any]:
    """From result.json, which the loop writes when it is done."""
    try:
        result = json.loads((making.run / "result.json").read_bytes())
    except (OSError, ValueError):
        result = {}
    seconds, tokens = result.get("seconds"), result.get("tokens")
    best = result.get("best") or {}
    return {
        "steps": result.get("step"),
        "epochs": making.job.recipe.plan.epochs,
        "rate": result.get("rate"),
        "seconds": seconds,
        "tokens": tokens,
        "tokens_per_second": tokens / seconds if tokens and seconds else None,
        "precision": making.precision,
        "threads": making.threads,
        "best_step": best.get("step"),
        "best_weights": best.get("weights"),
        "seed": making.job.recipe.run.seed,
    }


def head(model: TaskModel) -> dict[str, Any]:
    """Whose head it is, and what it reads of a text, in words."""
    kind = "own" if model.head.published is None else "published"
    return {"kind": kind, "reads": model.head.in_words()}


def regularization(predictor: ModelPredictor, recipe: FinetuneRecipe) -> str:
    """What was used against overfitting, in words."""
    inside: dict[str, float] = {}
    if not recipe.encoder.frozen:
        spec = predictor.model.transformer.spec
        inside = {"dropout": spec.dropout, "attention dropout": spec.attention_dropout}
    if recipe.regularization.token_dropout:
        inside["token dropout"] = recipe.regularization.token_dropout
    if recipe.regularization.r_drop:
        inside["R-Drop"] = recipe.regularization.r_drop
    above = {
        "dropout before the head": recipe.head.dropout,
        "weight decay": recipe.optimizer.weight_decay,
    }
    if isinstance(recipe.loss, CrossEntropySettings) and recipe.loss.smoothing:
        above["label smoothing"] = recipe.loss.smoothing
    rates = above if recipe.encoder.frozen else inside | above
    parts = [f"{name} {rate:g}" for name, rate in rates.items()]
    if recipe.encoder.frozen:
        parts.insert(0, "frozen encoder")
    return ", ".join(parts)


def curves(log: Path) -> list[dict[str, Any]]:
    """The lines of a log that draw curves, thinned evenly."""
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    rows = [json.loads(line) for line in lines if line.strip()]
    lines_of_curves: list[dict[str, Any]] = []
    for kind in CURVES:
        some = [row for row in rows if row.get("kind") == kind]
        step = max(1, -(-len(some) // CURVE_POINTS))
        thinned = some[::step]
        if some and thinned[-1] is not some[-1]:
            thinned.append(some[-1])
        lines_of_curves += thinned
    return sorted(lines_of_curves, key=lambda row: row.get("step", 0))
