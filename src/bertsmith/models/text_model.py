"""What a task is put on: any encoder that gives hidden states per token."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from torch import Tensor, nn

from bertsmith.nn.encoder import Encoded, Want
from bertsmith.nn.inputs import Inputs


class EncoderShape(Protocol):
    """The sizes that a task asks of an encoder."""

    @property
    def hidden(self) -> int:
        """The width of a hidden state."""

    @property
    def layers(self) -> int:
        """Layers above the embeddings."""

    @property
    def vocab_size(self) -> int:
        """The largest id plus one."""


class TextModel(nn.Module, ABC):
    """An encoder, for some models a decoder, and heads, of which there may be none."""

    spec: EncoderShape
    encoder: nn.Module
    decoder: nn.Module | None
    heads: nn.ModuleDict

    @abstractmethod
    def forward(
        self,
        inputs: Inputs,
        *,
        rows: Tensor | None = None,
        want: Want = Want(),  # noqa: B008 - frozen
    ) -> Encoded:
        """The encoder's rows: T rows of inputs -> Encoded, of `rows` (P,) alone."""
