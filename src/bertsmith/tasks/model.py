"""TaskModel: an encoder, how its rows become what a task reads, and the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.nn.encoder import Want
from bertsmith.tasks.auxiliary import Auxiliary
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.crf import Crf
from bertsmith.tasks.head import HeadSettings, TextHead, draw_weights
from bertsmith.tasks.tag import Tag
from bertsmith.tasks.task import Task
from bertsmith.tasks.vector import TextVector, VectorSettings

PUBLISHED = {"classify": "sequence", "multilabel": "sequence", "regress": "sequence"}
PUBLISHED |= {"choose": "sequence", "tag": "token", "answer": "span"}


def published_head(task: Task, vector: VectorSettings, head: HeadSettings) -> str | None:
    """The kind of the model's own head that this task uses; None if it brings one of its own."""
    if _crf(task) is not None:
        return None
    if task.reads == "rows":
        return PUBLISHED[task.name] if head.is_plain and not vector.needs_layers else None
    return PUBLISHED[task.name] if vector.is_published and head.is_plain else None


def _crf(task: Task) -> Crf | None:
    return task.crf if isinstance(task, Tag) else None


class TaskModel(nn.Module):
    """What is fine-tuned; `forward` gives a task's logits for a batch.

    Where the head is the model's published one, it is part of `model` and other libraries load it;
    otherwise it is `own`, with `vector` before it for tasks on whole texts.
    """

    def __init__(
        self,
        model: Model,
        task: Task,
        *,
        vector: VectorSettings,
        head: HeadSettings,
        pool: str,
        meta_sizes: Mapping[str, int],
        auxiliary: Sequence[Auxiliary] = (),
        random: torch.Generator | None = None,
    ) -> None:
        """`pool` joins the windows of a text; `random` draws the weights of an own head."""
        super().__init__()
        self.columns = tuple(auxiliary)
        self.model = model
        self.task = task
        self.settings = vector
        self.pool = pool
        self.published = published_head(task, vector, head)
        self.vector: TextVector | None = None
        self.own: TextHead | None = None
        self.crf = _crf(task)  # the task reads it; here it is moved, trained and stored
        if self.published is not None:
            if self.published not in model.heads:
                raise ConfigError(f"build the model with a {self.published} head for {task.name}")
            self._add_auxiliary(head, model.spec.hidden, random)
            return
        if vector.is_published and task.reads == "text":
            raise ConfigError(
                "published pooling goes with a single linear layer; give vector.pooling = first, "
                "mean, max or attention with other heads"
            )
        if task.reads == "rows" and (head.meta or vector.needs_layers):
            raise ConfigError(f"{task.name} reads single rows: it has no meta features or layers")
        width = model.spec.hidden
        if task.reads == "text":
            self.vector = TextVector(vector, hidden=width, layers=model.spec.layers)
            width = self.vector.width
        self.own = TextHead(head, width=width, outputs=task.outputs, meta_sizes=meta_sizes)
        draw_weights(self.own, random)
        self._add_auxiliary(head, width, random)

    def _add_auxiliary(
        self, head: HeadSettings, width: int, random: torch.Generator | None
    ) -> None:
        """A linear layer for each auxiliary target, on the vector that the task's head reads."""
        plain = HeadSettings(dropout=head.dropout)
        self.auxiliary = nn.ModuleList(
            TextHead(plain, width=width, outputs=one.outputs, meta_sizes={}) for one in self.columns
        )
        for layer in self.auxiliary:
            draw_weights(layer, random)

    def forward(self, batch: TaskBatch) -> Tensor:
        """(E, C), or (U, C) for tasks on rows."""
        return self._on_rows(batch) if self.task.reads == "rows" else self._on_texts(batch)[0]

    def with_auxiliary(self, batch: TaskBatch) -> tuple[Tensor, list[Tensor]]:
        """(E, C) of the task, and (E, C) of each auxiliary target."""
        logits, vectors = self._on_texts(batch)
        none = batch.meta.new_zeros(len(vectors), 0)
        return logits, [layer(vectors, none) for layer in self.auxiliary]

    def _on_texts(self, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Logits (E, C) and the vectors (E, W) that they were made of."""
        if self.published is not None:
            firsts = torch.tensor(batch.layout.starts, device=batch.ids.device)
            hidden = self._encode(batch, rows=firsts)[-1]
            logits = self._joined(self.model.logits(self.published, hidden), batch)
            if not self.columns:
                return logits, hidden
            pooled = self.model.reads(self.published) == "pooled"
            vectors = self.model.encoder.pool(hidden) if pooled else hidden
            return logits, self._joined(vectors, batch)
        if self.vector is None or self.own is None:
            raise ConfigError("a task on texts needs a vector and a head")
        first_only = self.settings.pooling == "first" and self.settings.layers == "last"
        rows = torch.tensor(batch.layout.starts, device=batch.ids.device) if first_only else None
        layers = self._encode(batch, rows=rows)
        if first_only:
            return self._headed(layers[-1], batch)
        return self._headed(self.vector(layers, batch.layout.lengths), batch)

    def read_layers(self, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """The (T, D) of all layers, encoded before, through the vector and the own head: (E, C)."""
        if self.vector is None:
            raise ConfigError("only a model with a vector and a head of its own reads layers")
        return self._headed(self.vector(layers, batch.layout.lengths), batch)[0]

    def _headed(self, vectors: Tensor, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Vectors of passages (B, W) -> logits (E, C), and the vectors (E, W) they are made of."""
        if self.own is None:
            raise ConfigError("a task on texts needs a vector and a head")
        joined = self._joined(vectors, batch)
        meta = batch.meta if len(joined) == batch.examples else batch.meta[batch.owners]
        return self.own(joined, meta), joined

    def _on_rows(self, batch: TaskBatch) -> Tensor:
        if batch.at is None:
            raise ConfigError(f"{self.task.name} reads rows, and the batch names none")
        every = torch.arange(batch.tokens, device=batch.at.device)
        rows = None if torch.equal(batch.at, every) else batch.at  # all: as if none were named
        hidden = self._encode(batch, rows=rows)[-1]
        if self.published is not None:
            return self.model.logits(self.published, hidden)
        if self.own is None:
            raise ConfigError("a task on rows needs a head")
        logits: Tensor = self.own(hidden, batch.meta.new_zeros(len(hidden), 0))
        return logits

    def _encode(self, batch: TaskBatch, *, rows: Tensor | None) -> tuple[Tensor, ...]:
        """All layers if they are read, else the last alone."""
        segments = batch.segments if self.model.spec.segments > 1 else None
        want = Want(layers=self.settings.needs_layers and self.vector is not None)
        encoded = self.model(batch.ids, batch.layout, segments=segments, rows=rows, want=want)
        return encoded.layers or (encoded.hidden,)

    def _joined(self, vectors: Tensor, batch: TaskBatch) -> Tensor:
        """The passages of each example as one: (B, W) -> (E, W)."""
        if batch.examples == len(vectors) or self.task.name == "choose":
            return vectors
        owners = batch.owners[:, None].expand_as(vectors)
        empty = vectors.new_zeros(batch.examples, vectors.shape[1])
        kind = "amax" if self.pool == "max" else "mean"
        return empty.scatter_reduce(0, owners, vectors, kind, include_self=False)
