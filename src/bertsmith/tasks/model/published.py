"""Heads in the shape that the model's family publishes, which transformers reads."""

from __future__ import annotations

from dataclasses import replace

import torch

from bertsmith.models.build import Model, build
from bertsmith.models.config.labels import Labels
from bertsmith.models.surgery import copy_weights
from bertsmith.models.variant import Head
from bertsmith.models.variants import find
from bertsmith.tasks.kinds import TASKS
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.heads import PairHead, RowsHead, SettledHead, TextsHead
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.task import PublishedHead, Task

SEQUENCE = "sequence"


def head_gaps(model: TaskModel, lengths: LengthSettings) -> list[str]:
    """What keeps a head from having the published shape, in words; [] if nothing does."""
    if model.head.published is not None:
        return []
    if not isinstance(model.model, Model):
        return ["encoder of words"]
    own, spec = model.head, model.model.spec
    if not isinstance(own, SettledHead):
        return ["a head of the task itself"]
    head, vector = own.shape.head, own.shape.vector
    if model.task.crf is not None:
        return ["CRF"]
    if vector.channel is not None:
        return ["channel of tags"]
    if isinstance(own, PairHead):
        return ["cosine of two texts"]
    if isinstance(own, RowsHead):
        return ["dense layers before the output"]
    activation = _activation(model.model)
    gaps = []
    first = find(model.model.variant).heads[SEQUENCE].reads in ("first", "pooled")
    if vector.pooling not in ("first", "published") or not first:
        gaps.append(f"{vector.pooling} pooling")
    if vector.needs_layers:
        gaps.append(f"layers = {vector.layers}")
    gaps += [
        f"head.{name}" for name in ("batch_norm", "meta", "wide", "lstm") if getattr(head, name)
    ]
    if lengths.stride is not None:
        gaps.append("windows")
    if model.columns:
        gaps.append("auxiliary columns")
    if not gaps and (head.layers, head.activation) != ((spec.hidden,), activation):
        gaps.append(f"dense layers other than one of width {spec.hidden} with {activation}")
    return gaps


def _activation(model: Model) -> str | None:
    """Of the dense layer before the output, which is the pooler in some families."""
    shape = find(model.variant).heads[SEQUENCE]
    return "tanh" if shape.reads == "pooled" else shape.activation_of(model.spec)


@torch.no_grad()
def as_published(model: TaskModel, whole: Model, lengths: LengthSettings) -> Model | None:
    """A model with the family's own head that gives the logits of an own head; None: there is none.

    `whole` is the encoder of `model` with whole tensors on the CPU.
    """
    if not isinstance(model.head, TextsHead) or head_gaps(model, lengths):
        return None
    own = model.head.own
    pooled = find(whole.variant).heads[SEQUENCE].reads == "pooled"
    head = Head(kind=SEQUENCE, outputs=model.task.outputs, dropout=own.settings.dropout)
    fresh = build(whole.variant, replace(whole.spec, pooler=pooled), heads=[head])
    copy_weights(whole, fresh)
    places = {"dense.0": "encoder.pooler" if pooled else "heads.sequence.dense"}
    for name, place in {**places, "output": "heads.sequence.output"}.items():
        fresh.get_submodule(place).load_state_dict(own.get_submodule(name).state_dict())
    return fresh


def published_task(model: Model, labels: Labels) -> Task | None:
    """The task of a folder that another library fine-tuned, from its head; None: it has none."""
    for head in model.head_specs:
        problem = None
        if head.kind == SEQUENCE:
            default = "regression" if head.outputs == 1 else "single_label_classification"
            problem = labels.problem or default
        for kind in TASKS.values():
            same = replace(kind.head, labeled=True) == PublishedHead(head.kind, problem)
            if same and kind.from_labels is not None:
                names = labels.names or tuple(f"LABEL_{n}" for n in range(head.outputs))
                return kind.from_labels(names)
    return None
