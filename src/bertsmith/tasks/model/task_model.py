"""TaskModel: an encoder, the text vector or token rows that a task reads, and the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import torch
from torch import Tensor, nn

from bertsmith.errors import ConfigError
from bertsmith.models.build import Model
from bertsmith.models.text_model import TextModel
from bertsmith.nn.encoder import Want
from bertsmith.nn.pooling import LayerMix
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.enrichment.tag_channel import CHANNEL, TagChannel, draw_channel, words_of_rows
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.model.columns import Auxiliary
from bertsmith.tasks.model.head import (
    CosineHead,
    HeadSettings,
    RowsLSTM,
    TextHead,
    WideFeatures,
    draw_weights,
)
from bertsmith.tasks.model.text_vector import TextVector, VectorSettings
from bertsmith.tasks.task import Task


def published_head(task: Task, vector: VectorSettings, head: HeadSettings) -> str | None:
    """The kind of the model's own head that this task uses; None if it brings one of its own."""
    if task.crf is not None or not head.is_plain:
        return None
    own = vector.needs_layers if task.reads == "rows" else not vector.is_published
    own = own or vector.channel is not None
    return None if own else task.kind.head.kind


def _check_bi_encoder(
    vector: VectorSettings, head: HeadSettings, auxiliary: Sequence[Auxiliary]
) -> None:
    """The vectors of a bi-encoder meet in their cosine, with no layer above it."""
    if vector.is_published:
        raise ConfigError(
            "encoder.pair = bi-encoder compares vectors of texts, which published pooling does not "
            "give; set vector.pooling to mean, first, max or attention"
        )
    if not head.is_plain or head.dropout or auxiliary:
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
    """A published head has a row for each output; its last matrix is the one that gives them."""
    *_, last = (weight for weight in head.parameters() if weight.dim() == 2)
    if len(last) != task.outputs:
        raise ConfigError(
            f"the head of the model has {len(last)} outputs, and {task.name} with its labels needs "
            f"{task.outputs}; take weights and bertsmith.json from the same run"
        )


def _lstm(
    head: HeadSettings, vector: VectorSettings, hidden: int, random: torch.Generator | None
) -> RowsLSTM | None:
    """The LSTM between encoder and head, if there is one; it reads the last layer."""
    if head.lstm is None:
        return None
    if vector.combines_layers:
        raise ConfigError(
            f"head.lstm reads the last layer, or a mix of all, not vector.layers = "
            f"{vector.layers}; leave one out"
        )
    lstm = RowsLSTM(hidden, head.lstm)
    draw_weights(lstm, random)
    return lstm


class TaskModel(nn.Module):
    """What is fine-tuned; `forward` gives a task's logits for a batch.

    A head that is the model's published one is part of `model`; otherwise it is `own`, with
    `vector` before it for tasks on whole texts.
    """

    def __init__(
        self,
        model: TextModel,
        task: Task,
        *,
        vector: VectorSettings,
        head: HeadSettings,
        lengths: LengthSettings,
        meta_sizes: Mapping[str, int],
        auxiliary: Sequence[Auxiliary] = (),
        random: torch.Generator | None = None,
    ) -> None:
        """`lengths` says how passages are joined; `random` draws the weights of an own head."""
        super().__init__()
        if task.bi_encoder:
            _check_bi_encoder(vector, head, auxiliary)
        self.columns = tuple(auxiliary)
        self.frozen = False
        self.model = model
        self.task = task
        self.settings = vector
        self.pool = lengths.pool
        self.published = published_head(task, vector, head) if isinstance(model, Model) else None
        self.vector: TextVector | None = None
        self.own: TextHead | None = None
        self.bag: WideFeatures | None = None
        self.cosine: CosineHead | None = None
        self.lstm: RowsLSTM | None = None
        self.channel: TagChannel | None = None
        shape = (model.spec.layers + 1, model.spec.hidden)
        self.mix = LayerMix(*shape) if vector.layers == "mix" else None
        self.crf = task.crf  # the task reads it; here it is moved, trained and stored
        self._leave_decoder()
        if self.published is not None:
            if self.published not in model.heads:
                raise ConfigError(f"build the model with a {self.published} head for {task.name}")
            _check_outputs(model.heads[self.published], task)
            self._add_auxiliary(head, model.spec.hidden, random)
            return
        if vector.is_published and task.reads == "text":
            raise ConfigError(
                "published pooling goes with a single linear layer; give vector.pooling = first, "
                "mean, max or attention with other heads"
            )
        _check_rows(task, vector, head)
        self.lstm = _lstm(head, vector, model.spec.hidden, random)
        width = model.spec.hidden if self.lstm is None else self.lstm.width
        width = self._add_channel(vector, width, random)
        if task.reads == "text":
            self.vector = TextVector(vector, hidden=width, layers=model.spec.layers)
            width = self.vector.width
        if task.bi_encoder:
            self.cosine = CosineHead()
            self._add_auxiliary(head, width, random)
            return
        if head.wide:
            self.bag = WideFeatures(model.spec.vocab_size, task.outputs)
        self.own = TextHead(head, width=width, outputs=task.outputs, meta_sizes=meta_sizes)
        draw_weights(self.own, random)
        self._add_auxiliary(head, width, random)

    def _add_channel(
        self, vector: VectorSettings, width: int, random: torch.Generator | None
    ) -> int:
        """The layers of tags, if there are any; the width of a row, `width` without them."""
        if vector.channel is None:
            return width
        if vector.combines_layers or vector.pooling in ("first", "last") or self.lstm is not None:
            raise ConfigError(
                "a channel is joined to the words of the last layer: leave vector.layers and "
                "head.lstm out, and set vector.pooling to max, mean or attention"
            )
        self.channel = TagChannel(vector.channel, width)
        draw_channel(self.channel, random)
        return self.channel.width

    def _leave_decoder(self) -> None:
        """A decoder that no head reads is not trained; it stays in the folder as it was."""
        if self.published is not None and self.transformer.reads(self.published) == "decoded":
            return
        for name, parameter in self.model.named_parameters():
            if name.startswith("decoder."):
                parameter.requires_grad_(False)

    @property
    def transformer(self) -> Model:
        """The model, where it is one of the published variants and not an encoder of words."""
        if not isinstance(self.model, Model):
            raise ConfigError("an encoder of words has no heads of its own; give settings of head")
        return self.model

    def freeze(self) -> None:
        """Freeze encoder and decoder; the pooler, which many folders lack, is trained anew."""
        self.frozen = True
        for name, parameter in self.model.named_parameters():
            if not name.startswith("heads."):
                parameter.requires_grad_(name.startswith("encoder.pooler."))
        self.train(self.training)

    def train(self, mode: bool = True) -> Self:
        """A frozen model stays in evaluation mode, its head does not."""
        super().train(mode)
        if self.frozen:
            self.model.encoder.eval()
            if self.model.decoder is not None:
                self.model.decoder.eval()
        return self

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
        if self.task.reads == "text":
            return self._on_texts(batch)[0]
        at = _read_rows(batch)
        if self.lstm is not None:
            whole = self._encode(batch, rows=None)[-1]
            return self._of_rows(self.lstm(whole, batch.layout.lengths)[at], batch)
        if self.channel is not None:
            return self._of_words(self._encode(batch, rows=None)[-1], batch)
        every = torch.arange(batch.tokens, device=at.device)
        rows = None if torch.equal(at, every) else at  # all: as if none were named
        return self._of_rows(self._encode(batch, rows=rows)[-1], batch)

    def with_auxiliary(self, batch: TaskBatch) -> tuple[Tensor, list[Tensor]]:
        """(E, C) of the task, and (E, C) of each auxiliary target."""
        logits, vectors = self._on_texts(batch)
        none = batch.meta.new_zeros(len(vectors), 0)
        return logits, [layer(vectors, none) for layer in self.auxiliary]

    @property
    def keeps_vectors(self) -> bool:
        """Whether `passages` gives the same vectors in every epoch."""
        learns = self.vector is not None and any(True for _ in self.vector.parameters())
        learns = learns or any(part is not None for part in (self.lstm, self.mix, self.channel))
        return self.frozen and self.task.reads == "text" and not learns

    @property
    def keeps_layers(self) -> bool:
        """Whether all that learns reads `layers`, which are the same in every epoch."""
        return self.frozen and self.published is None and not self.keeps_vectors

    @property
    def width(self) -> int:
        """W of what `passages` gives."""
        return self.model.spec.hidden if self.vector is None else self.vector.width

    def passages(self, batch: TaskBatch) -> Tensor:
        """What the head, or the pooler before it, reads of each passage: (B, W)."""
        if self._reads_one_row:
            return self._one_row(batch)
        return self._vectors(self._encode(batch, rows=None), batch)

    def read_layers(self, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """`forward` from given layers (T, D): the last, or all that are read."""
        layers = self._mixed(layers)
        if self.task.reads == "rows" and self.channel is not None:
            return self._of_words(layers[-1], batch)
        if self.task.reads == "rows":
            last = layers[-1] if self.lstm is None else self.lstm(layers[-1], batch.layout.lengths)
            return self._of_rows(last.index_select(0, _read_rows(batch)), batch)
        if self._reads_one_row:
            return self._of_one_row(self._one_row(batch, layers[-1]), batch)[0]
        return self._headed(self._vectors(layers, batch), batch)[0]

    @property
    def reads_last(self) -> bool:
        """Whether the last layer is all that is read."""
        return self.mix is None and (self.vector is None or not self.settings.needs_layers)

    @property
    def _reads_one_row(self) -> bool:
        """Whether a text is one row: the one its published head reads, or the first."""
        settings = self.settings
        own = settings.pooling == "first" and settings.layers == "last" and self.lstm is None
        return self.published is not None or own

    def _on_texts(self, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Logits (E, C) and the vectors (E, W) that they were made of."""
        vectors = self.passages(batch) if batch.vectors is None else batch.vectors
        if self._reads_one_row:
            return self._of_one_row(vectors, batch)
        return self._headed(vectors, batch)

    def _one_row(self, batch: TaskBatch, hidden: Tensor | None = None) -> Tensor:
        """The one row that is read of each passage; `hidden` (T, D), if it is known: -> (B, D)."""
        if self.published is not None:
            return self.transformer.text_rows(self.published, batch.inputs, hidden)
        firsts = torch.tensor(batch.layout.starts, device=batch.ids.device)
        if hidden is not None:
            return hidden.index_select(0, firsts)
        return self._encode(batch, rows=firsts)[-1]

    def _of_one_row(self, hidden: Tensor, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """One row per passage (B, D) -> logits (E, C) and vectors (E, D)."""
        if self.published is None:
            return self._headed(hidden, batch)
        logits = self._joined(self.transformer.logits(self.published, hidden), batch)
        if not self.columns:
            return logits, hidden
        pooled = self.transformer.reads(self.published) == "pooled"
        vectors = self.transformer.encoder.pool(hidden) if pooled else hidden
        return logits, self._joined(vectors, batch)

    def _vectors(self, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """Layers (T, D) of the passages of a batch -> their vectors (B, W)."""
        if self.vector is None:
            raise ConfigError("a task on texts needs a vector and a head")
        lengths: Sequence[int] = batch.layout.lengths
        if self.lstm is not None:
            layers = [self.lstm(layers[-1], lengths)]
        if self.channel is not None:
            rows, lengths = self.channel(layers[-1], _tags(batch), lengths)
            layers = (rows,)
        vectors: Tensor = self.vector(layers, lengths)
        return vectors

    def _headed(self, vectors: Tensor, batch: TaskBatch) -> tuple[Tensor, Tensor]:
        """Vectors of passages (B, W) -> logits (E, C), and the vectors (E, W) they are made of."""
        if self.cosine is not None:
            return self.cosine(vectors), vectors
        if self.own is None:
            raise ConfigError("a task on texts needs a vector and a head")
        joined = self._joined(vectors, batch)
        whole = len(joined) == batch.examples
        logits = self.own(joined, batch.meta if whole else batch.meta[batch.owners])
        if self.bag is not None:
            passages = torch.arange(len(joined), device=batch.owners.device)
            logits = logits + self.bag(batch, batch.owners if whole else passages, len(joined))
        return logits, joined

    def _of_rows(self, hidden: Tensor, batch: TaskBatch) -> Tensor:
        """The rows that the head reads (U, D) -> logits (U, C)."""
        if self.published is not None:
            return self.transformer.logits(self.published, hidden)
        if self.own is None:
            raise ConfigError("a task on rows needs a head")
        logits: Tensor = self.own(hidden, batch.meta.new_zeros(len(hidden), 0))
        return logits

    def _of_words(self, hidden: Tensor, batch: TaskBatch) -> Tensor:
        """Rows of tokens (T, D) -> logits (U, C) of the words that are read."""
        if self.channel is None:
            raise ConfigError("a model without a channel has no rows of words")
        tags, lengths = _tags(batch), batch.layout.lengths
        rows, _ = self.channel(hidden, tags, lengths)
        word, _ = words_of_rows(tags[:, 0], lengths)
        return self._of_rows(rows.index_select(0, word[_read_rows(batch)]), batch)

    def _encode(self, batch: TaskBatch, *, rows: Tensor | None) -> tuple[Tensor, ...]:
        """All layers if they are read, else the last alone, or their mix."""
        if batch.layers is None and self.mix is None:
            return self._layers(batch, rows)
        whole = self._layers(batch, None) if batch.layers is None else tuple(batch.layers)
        mixed = self._mixed(whole)
        return mixed if rows is None else (mixed[-1].index_select(0, rows),)

    def layers(self, batch: TaskBatch) -> Tensor:
        """What is read of the encoder: all layers, or the last alone: (n, T, D)."""
        return torch.stack(self._layers(batch, None))

    def _layers(self, batch: TaskBatch, rows: Tensor | None) -> tuple[Tensor, ...]:
        want = Want(layers=not self.reads_last)
        encoded = self.model(batch.inputs.without(CHANNEL), rows=rows, want=want)
        return encoded.layers or (encoded.hidden,)

    def _mixed(self, layers: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The learned mix of all layers as the only one, where there is one."""
        return tuple(layers) if self.mix is None else (self.mix(torch.stack(list(layers))),)

    def _joined(self, vectors: Tensor, batch: TaskBatch) -> Tensor:
        """The passages of each example as one: (B, W) -> (E, W)."""
        if batch.examples == len(vectors) or not self.task.kind.pools_passages:
            return vectors
        owners = batch.owners[:, None].expand_as(vectors)
        empty = vectors.new_zeros(batch.examples, vectors.shape[1])
        kind = "amax" if self.pool == "max" else "mean"
        return empty.scatter_reduce(0, owners, vectors, kind, include_self=False)


def _tags(batch: TaskBatch) -> Tensor:
    """Word numbers and tags of a batch: (T, 1 + S)."""
    if CHANNEL not in batch.inputs.channels:
        raise ConfigError("the model reads tags of words, and the batch has none")
    return batch.inputs.channels[CHANNEL]


def _read_rows(batch: TaskBatch) -> Tensor:
    """The rows that a head on rows reads: (U,)."""
    if batch.at is None:
        raise ConfigError("the task reads rows, and the batch names none")
    return batch.at
