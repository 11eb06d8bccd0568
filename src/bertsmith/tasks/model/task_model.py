"""TaskModel: an encoder, what changes its inputs, and the head of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from bertsmith.models.build import Model
from bertsmith.models.text_model import TextModel
from bertsmith.nn.encoder import Want
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.model.columns import Auxiliary
from bertsmith.tasks.model.heads import of_tokens
from bertsmith.tasks.model.task_head import InputWrapper, TaskHead
from bertsmith.tasks.task import Task

WRAPPER = "wrapper."  # how stored names of its weights begin


class TaskModel(nn.Module):
    """What is fine-tuned; `forward` gives a task's logits for a batch.

    A head that is the model's published one has its weights in `model`. `from_settings.task_model`
    builds all of it from the settings of a recipe or of a folder.
    """

    def __init__(
        self, model: TextModel, task: Task, head: TaskHead, wrapper: InputWrapper | None = None
    ) -> None:
        super().__init__()
        self.frozen = False
        self.model = model
        self.task = task
        self.head = head
        self.wrapper = wrapper
        self._leave_decoder()

    def _leave_decoder(self) -> None:
        """A decoder that no head reads is not trained; it stays in the folder as it was."""
        published = self.head.published
        if published is not None and self.transformer.reads(published) == "decoded":
            return
        for name, parameter in self.model.named_parameters():
            if name.startswith("decoder."):
                parameter.requires_grad_(False)

    @property
    def transformer(self) -> Model:
        """The model, where it is one of the published variants and not an encoder of words."""
        return of_tokens(self.model)

    @property
    def columns(self) -> tuple[Auxiliary, ...]:
        """Further columns that it learns."""
        return self.head.columns

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

    def forward(self, batch: TaskBatch) -> Tensor:
        """(E, C), or (U, C) for tasks on rows."""
        return self.head.logits(self.model, self._read(batch), batch)

    def with_auxiliary(self, batch: TaskBatch) -> tuple[Tensor, list[Tensor]]:
        """(E, C) of the task, and (E, C) of each auxiliary target."""
        return self.head.with_auxiliary(self.model, self._read(batch), batch)

    def read_layers(self, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """`forward` from given layers (T, D): the last, or all that are read."""
        chosen = _chosen(layers, self.head.rows(self.model, batch))
        logits: Tensor = self.head(self.model, chosen, batch)
        return logits

    def passages(self, batch: TaskBatch) -> Tensor:
        """What the head, or the pooler before it, reads of each passage: (B, W)."""
        return self.head.read(self.model, self._layers(batch), batch)

    def layers(self, batch: TaskBatch) -> Tensor:
        """What is read of the encoder: all layers, or the last alone: (n, T, D)."""
        return torch.stack(list(self._encoded(batch, None)))

    @property
    def width(self) -> int:
        """W of what `passages` gives."""
        return self.head.width

    @property
    def keeps_vectors(self) -> bool:
        """Whether `passages` gives the same vectors in every epoch."""
        return self._keeps == "vectors"

    @property
    def keeps_layers(self) -> bool:
        """Whether all that learns reads `layers`, which are the same in every epoch."""
        return self._keeps == "layers"

    @property
    def _keeps(self) -> str | None:
        return self.head.keeps if self.frozen and self.wrapper is None else None

    @property
    def reads_last(self) -> bool:
        """Whether the last layer is all that is read, of the batch as it is."""
        return not self.head.reads_layers and self.wrapper is None

    def stored(self) -> dict[str, Tensor]:
        """The weights of head and wrapper by the names they have in a model folder."""
        wrapped = {} if self.wrapper is None else self.wrapper.state_dict()
        return self.head.stored() | {WRAPPER + name: tensor for name, tensor in wrapped.items()}

    def _read(self, batch: TaskBatch) -> Tensor:
        return self.passages(batch) if batch.vectors is None else batch.vectors

    def _layers(self, batch: TaskBatch) -> Sequence[Tensor]:
        """Layers of the rows that the head reads."""
        rows = self.head.rows(self.model, batch)
        if batch.layers is not None:
            return _chosen(tuple(batch.layers), rows)
        return self._encoded(batch, rows)

    def _encoded(self, batch: TaskBatch, rows: Tensor | None) -> Sequence[Tensor]:
        """The layers that are read, of some rows of the batch or of all."""
        inputs, place = batch.inputs, None
        for channel in self.head.channels:
            inputs = inputs.without(channel)
        if self.wrapper is not None:
            inputs, place = self.wrapper(inputs)
        if place is not None:
            rows = place if rows is None else place[rows]
        if not self.head.reads_layers:
            return (self.model(inputs, rows=rows).hidden,)
        layers: Sequence[Tensor] = self.model(inputs, want=Want(layers=True)).layers
        return _chosen(layers, rows)


def _chosen(layers: Sequence[Tensor], rows: Tensor | None) -> Sequence[Tensor]:
    """Some rows (P,) of layers (T, D); None: all."""
    return layers if rows is None else [layer.index_select(0, rows) for layer in layers]
