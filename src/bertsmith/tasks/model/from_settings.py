"""The head that a task and its settings ask for, or that a task brings itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.models.text_model import TextModel
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.columns import Auxiliary
from bertsmith.tasks.model.heads import (
    HeadShape,
    PairHead,
    PassageVectors,
    PublishedRows,
    PublishedTexts,
    RowsHead,
    TextsHead,
)
from bertsmith.tasks.model.layers import HeadSettings, TextHead, WideFeatures, draw_weights
from bertsmith.tasks.model.rows import RowReading
from bertsmith.tasks.model.task_head import TaskHead
from bertsmith.tasks.model.task_model import TaskModel
from bertsmith.tasks.model.text_vector import TextVector, VectorSettings
from bertsmith.tasks.task import Task


def task_model(
    model: TextModel,
    task: Task,
    *,
    vector: VectorSettings,
    head: HeadSettings,
    lengths: LengthSettings,
    meta_sizes: Mapping[str, int],
    auxiliary: Sequence[Auxiliary] = (),
    random: torch.Generator | None = None,
) -> TaskModel:
    """A task on an encoder.

    `lengths` says how passages are joined; `random` draws the weights of an own head.
    """
    pool = lengths.pool if task.kind.pools_passages else None
    shape = HeadShape(vector=vector, head=head, pool=pool, columns=tuple(auxiliary))
    wrapper = None if task.kind.wrapper is None else task.kind.wrapper(model, task, random)
    if task.kind.open_head is not None:
        _check_open(task, shape)
        return TaskModel(model, task, task.kind.open_head(model, task, random), wrapper)
    if task.bi_encoder:
        _check_bi_encoder(shape)
    kind = published_head(task, vector, head) if isinstance(model, Model) else None
    if kind is not None and isinstance(model, Model):
        return TaskModel(model, task, _published(model, kind, task, shape, random), wrapper)
    return TaskModel(model, task, _own(model, task, shape, meta_sizes, random), wrapper)


def published_head(task: Task, vector: VectorSettings, head: HeadSettings) -> str | None:
    """The kind of the model's own head that this task reads; None: one of its own is enough."""
    if task.kind.open_head is not None:
        return task.kind.head.kind
    if task.crf is not None or not head.is_plain:
        return None
    own = vector.needs_layers if task.reads == "rows" else not vector.is_published
    own = own or vector.channel is not None
    return None if own else task.kind.head.kind


def _published(
    model: Model, kind: str, task: Task, shape: HeadShape, random: torch.Generator | None
) -> TaskHead:
    """The head of the model's own family."""
    if kind not in model.heads:
        raise ConfigError(f"build the model with a {kind} head for {task.name}")
    _check_outputs(model.heads[kind], task)
    if task.reads == "rows":
        return PublishedRows(kind, shape)
    return PublishedTexts(model, kind, shape, random)


def _own(
    model: TextModel,
    task: Task,
    shape: HeadShape,
    meta_sizes: Mapping[str, int],
    random: torch.Generator | None,
) -> TaskHead:
    """A head with weights of its own."""
    vector, head, spec = shape.vector, shape.head, model.spec
    if vector.is_published and task.reads == "text":
        raise ConfigError(
            "published pooling goes with a single linear layer; give vector.pooling = first, "
            "mean, max or attention with other heads"
        )
    _check_rows(task, vector, head)
    reading = RowReading(vector, head, hidden=spec.hidden, layers=spec.layers, random=random)
    if task.reads == "rows":
        own = TextHead(head, width=reading.width, outputs=task.outputs, meta_sizes=meta_sizes)
        draw_weights(own, random)
        return RowsHead(reading, shape, own, task.crf)
    passages = PassageVectors(reading, TextVector(vector, hidden=reading.width, layers=spec.layers))
    if task.bi_encoder:
        return PairHead(passages, shape)
    bag = WideFeatures(spec.vocab_size, task.outputs) if head.wide else None
    width = passages.vector.width
    own = TextHead(head, width=width, outputs=task.outputs, meta_sizes=meta_sizes)
    draw_weights(own, random)
    return TextsHead(passages, shape, own, bag=bag, random=random)


def _check_open(task: Task, shape: HeadShape) -> None:
    """A task that brings its head leaves nothing for settings of heads to say."""
    vector = shape.vector
    layered = vector.needs_layers or vector.channel is not None
    if not shape.head.is_plain or shape.columns or layered:
        raise ConfigError(
            f"{task.name} brings a head of its own: leave out head (but head.dropout), auxiliary, "
            "vector.layers and --channel"
        )


def _check_bi_encoder(shape: HeadShape) -> None:
    """The vectors of a bi-encoder meet in their cosine, with no layer above it."""
    if shape.vector.is_published:
        raise ConfigError(
            "encoder.pair = bi-encoder compares vectors of texts, which published pooling does not "
            "give; set vector.pooling to mean, first, max or attention"
        )
    if not shape.head.is_plain or shape.head.dropout or shape.columns:
        raise ConfigError(
            "encoder.pair = bi-encoder reads the cosine of two vectors and nothing else: set "
            "head.dropout=0.0 and leave out other settings of head and auxiliary"
        )


def _check_rows(task: Task, vector: VectorSettings, head: HeadSettings) -> None:
    """Refuse settings of whole texts for a task on rows."""
    if task.reads == "rows" and (head.meta or head.wide or vector.combines_layers):
        raise ConfigError(
            f"{task.name} reads single rows: head.meta, head.wide and vector.layers (but mix) are "
            "for tasks on whole texts; leave them out"
        )


def _check_outputs(head: nn.Module, task: Task) -> None:
    """A published head of classes has a row for each output, in its last matrix."""
    *_, last = (weight for weight in head.parameters() if weight.dim() == 2)
    if len(last) != task.outputs:
        raise ConfigError(
            f"the head of the model has {len(last)} outputs, and {task.name} with its labels needs "
            f"{task.outputs}; take weights and bertsmith.json from the same run"
        )
