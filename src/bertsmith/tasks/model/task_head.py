"""The two parts of a `TaskModel` that can be anything: a head on its encoder, a wrapper before it.

A head of settings, one of the model's own family and one that a task brings (`TaskKind.open_head`)
are tenants of the same interface; so are soft prompts and whatever else changes what is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.models.text_model import TextModel
from bertsmith.nn.inputs import Inputs
from bertsmith.tasks.batch import TaskBatch
from bertsmith.tasks.feature import Feature
from bertsmith.tasks.model.columns import Auxiliary

Standardizer = Callable[[Iterable[NDArray[np.float32]]], None]
"""Takes layers (n, L, D) of some passages by a frozen encoder, to scale what is read of it."""


class TaskHead(nn.Module, ABC):
    """What stands on an encoder: it reads rows of its layers and makes logits of them.

    How many rows and outputs a head has is its own business: one that maps the vocabulary to
    classes has another matrix than a linear layer.
    """

    published: str | None = None
    """The kind of the model's own head that it is, whose weights are the model's."""
    reads_layers: bool = False
    """Whether it reads all layers, or the last alone."""
    keeps: Literal["vectors", "layers"] | None = None
    """What is the same in every epoch on a frozen encoder: what `read` gives, or its layers."""
    width: int = 0
    """W of what `read` gives, where that is kept."""
    channels: tuple[str, ...] = ()
    """Channels of the inputs that are for the head; the encoder does not see them."""
    columns: tuple[Auxiliary, ...] = ()
    """Further columns that it learns."""

    def rows(self, model: TextModel, batch: TaskBatch) -> Tensor | None:
        """The rows (P,) that are read of every layer; None: all."""
        return None

    @abstractmethod
    def read(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """What the logits are made of: the last layer (P, D), or all of them -> (B, W) or (U, W).

        One row per passage, or per token that is read.
        """

    @abstractmethod
    def logits(self, model: TextModel, read: Tensor, batch: TaskBatch) -> Tensor:
        """What `read` gave -> (E, C), or (U, C) for tasks on rows."""

    def forward(self, model: TextModel, layers: Sequence[Tensor], batch: TaskBatch) -> Tensor:
        """Layers of the rows that it names -> logits."""
        return self.logits(model, self.read(model, layers, batch), batch)

    def with_auxiliary(
        self, model: TextModel, read: Tensor, batch: TaskBatch
    ) -> tuple[Tensor, list[Tensor]]:
        """The logits, and (E, C) of each of its `columns`."""
        return self.logits(model, read, batch), []

    def learn(self, features: Sequence[Feature]) -> None:
        """What is counted, not trained: called once with the passages of the training rows."""

    def standardizer(self) -> Standardizer | None:
        """What scales the layers that it reads, if anything does."""
        return None

    def stored(self) -> dict[str, Tensor]:
        """Its weights by the names they have in a model folder."""
        return dict(self.state_dict())

    def to_json(self) -> Mapping[str, Any]:
        """Plain values for the task's section of bertsmith.json."""
        return {}

    def in_words(self) -> str:
        """What it reads, for reports."""
        return "what the task says"


class InputWrapper(nn.Module, ABC):
    """Changes what the encoder reads of a batch; the head sees the rows of the batch all the same.

    Soft prompts put vectors before each text. Its weights are trained and stored with the head's.
    """

    @abstractmethod
    def forward(self, inputs: Inputs) -> tuple[Inputs, Tensor | None]:
        """T rows -> what the encoder reads, and the place of each of the T rows in it (T,).

        None: they stand where they stood. Rows that the wrapper adds are read by no head.
        """
