"""The model folder that comes out of fine-tuning."""

from __future__ import annotations

from pathlib import Path

import torch

from bertsmith.files.atomic_folder import result_folder
from bertsmith.folders.extras import HEAD, task_extras
from bertsmith.folders.write import save_model
from bertsmith.labeled.spec import DataSpec
from bertsmith.models.build import Model, build
from bertsmith.models.config.labels import NO_LABELS, Labels
from bertsmith.tasks.model.columns import MetaTables
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import Task
from bertsmith.text.tokenizer import Tokenizer
from bertsmith.training.finetune.recipe import FinetuneRecipe


def save_task_model(
    model: TaskModel,
    tokenizer: Tokenizer,
    out: Path,
    *,
    recipe: FinetuneRecipe,
    tables: MetaTables,
    spec: DataSpec | None = None,
) -> None:
    """Put the model folder into `out`, with all that prediction needs to know."""
    head = {
        name: tensor.detach().float().cpu()
        for name, tensor in model.state_dict().items()
        if not name.startswith("model.")
    }
    section = {
        "name": model.task.name,
        **model.task.to_json(),
        "length": recipe.length.model_dump(mode="json"),
        "vector": model.settings.model_dump(mode="json"),
        "head_settings": recipe.head.model_dump(mode="json"),
        "meta": {column: dict(table) for column, table in tables.items()},
        "auxiliary": {one.column: one.to_json() for one in model.columns},
    }
    with result_folder(out) as staging:
        save_model(
            _plain(model.model),
            tokenizer,
            staging,
            labels=labels_of(model.task),
            extras=task_extras(section, head, spec.to_values() if spec else None),
        )
    if not head:
        (out / HEAD).unlink(missing_ok=True)  # of a run with other settings


def labels_of(task: Task) -> Labels:
    """Labels and kind of problem as config.json spells them."""
    head = task.kind.head
    if not head.labeled:
        return NO_LABELS
    plain = tuple(f"LABEL_{number}" for number in range(task.outputs))
    names = task.labels if len(task.labels) == task.outputs else plain
    return Labels(names=names, problem=head.problem)


def _plain(model: Model) -> Model:
    """The model on the CPU in fp32, with linear layers of the ordinary kind."""
    fresh = build(model.variant, model.spec, heads=model.head_specs, empty=True)
    with torch.no_grad():
        for own, trained in zip(fresh.parameters(), model.parameters(), strict=True):
            own.copy_(trained.detach().float().cpu())
    return fresh
