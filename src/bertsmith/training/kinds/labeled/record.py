"""What the record of a fine-tuned folder has besides what all records have."""

from __future__ import annotations

from typing import Any

from bertsmith.evaluation.proof import baselines, prove
from bertsmith.runtime.answer_files import write_labeled
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.runtime.predictor import ModelPredictor
from bertsmith.tasks.losses import CrossEntropySettings
from bertsmith.tasks.model.published import head_gaps
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.training.kinds.labeled.ablation import compare_ablation
from bertsmith.training.kinds.labeled.learner import FinetunedTask
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.record import Making

FinetuneMaking = Making[FinetuneRecipe, LabeledRows, FinetunedTask]


def prove_labeled(making: FinetuneMaking) -> dict[str, Any]:
    """Evaluate the finished folder on dev and test rows, and write the predictions.

    The folder is read from the disk, so the figures are those its user gets.
    """
    job, rows = making.job, making.job.rows
    predictor = load_predictor(job.folder, device=making.device)
    sides: dict[str, Any] = {"dev": None, "test": None}
    simple: dict[str, Any] = {}
    for name, examples in (("dev", rows.dev), ("test", rows.test)):
        if not examples:
            continue
        predicted = [one for _, one in predictor.stream(examples)]
        write_labeled(job.folder / f"predictions.{name}.jsonl", examples, predicted)
        if any(example.target is not None for example in examples):
            sides[name] = prove(predictor.task, examples, predicted).to_json()
            simple[name] = baselines(job.task, rows.train, examples)
    gaps = head_gaps(predictor.model, predictor.lengths)
    return {
        "labels": list(predictor.task.labels),
        "data": _data(rows),
        "head": head(predictor.model) | ({"gaps": gaps} if gaps else {}),
        "regularization": regularization(predictor, job.recipe),
        "training": {"epochs": job.recipe.plan.epochs},
        **sides,
        "baselines": simple,
        **rows.findings,
        **compare_ablation(job, making.device),
    }


def _data(rows: LabeledRows) -> dict[str, Any]:
    return {
        "files": {name: some[0].source for name, some in rows.sides.items() if some},
        "rows": {name: len(some) for name, some in rows.sides.items()},
        "rejected": dict(rows.rejected),
        "notes": list(rows.notes),
        "spec": rows.spec.to_values() if rows.spec is not None else None,
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
