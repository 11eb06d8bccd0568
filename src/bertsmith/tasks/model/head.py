"""Layers between the vector of a text and the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from bertsmith.config import Settings
from bertsmith.models.build import INIT_STD
from bertsmith.nn.feed_forward import find_activation

Width = Annotated[int, Field(gt=0)]


class HeadSettings(Settings):
    """A linear layer, after any number of dense ones.

    `samples` dropout masks are drawn for each example and their logits averaged (multi-sample
    dropout, Inoue 2019, arXiv:1905.09788). `meta` gives further columns of the data an embedding of
    that width, joined to the vector of the text. `wide` adds a linear bag-of-tokens term
    (`WideFeatures`) to the logits.
    """

    layers: Annotated[tuple[Width, ...], Field(strict=False)] = ()
    activation: str = "tanh"
    batch_norm: bool = False
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    samples: Annotated[int, Field(gt=0)] = 1
    meta: Mapping[str, Width] = {}
    wide: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether one linear layer is all, as in published classifiers."""
        further = self.layers or self.batch_norm or self.meta or self.wide
        return not further and self.samples == 1


class TextHead(nn.Module):
    """Vectors and the numbers of meta features -> logits: (E, W), (E, n) -> (E, C)."""

    def __init__(
        self, settings: HeadSettings, *, width: int, outputs: int, meta_sizes: Mapping[str, int]
    ) -> None:
        """`meta_sizes` is the number of values of each meta feature, unknown ones included."""
        super().__init__()
        self.settings = settings
        self.activation = find_activation(settings.activation)
        self.meta = nn.ModuleList(
            nn.Embedding(meta_sizes[name], size) for name, size in settings.meta.items()
        )
        width += sum(settings.meta.values())
        self.dense = nn.ModuleList()
        self.norms = nn.ModuleList()
        for size in settings.layers:
            self.dense.append(nn.Linear(width, size))
            if settings.batch_norm:
                self.norms.append(nn.BatchNorm1d(size))
            width = size
        self.output = nn.Linear(width, outputs)

    def forward(self, vectors: Tensor, meta: Tensor) -> Tensor:
        """(E, W), (E, n) -> (E, C)."""
        parts = [table(meta[:, number]) for number, table in enumerate(self.meta)]
        rows = torch.cat([vectors, *parts], dim=1) if parts else vectors
        for number, layer in enumerate(self.dense):
            rows = layer(F.dropout(rows, self.settings.dropout, self.training))
            if self.settings.batch_norm and not (self.training and len(rows) == 1):
                rows = self.norms[number](rows)  # a single row has no spread to norm by
            rows = self.activation(rows)
        samples = self.settings.samples if self.training else 1
        drawn = [
            self.output(F.dropout(rows, self.settings.dropout, self.training))
            for _ in range(samples)
        ]
        return drawn[0] if samples == 1 else torch.stack(drawn).mean(dim=0)


def draw_weights(head: nn.Module, generator: torch.Generator | None) -> None:
    """Matrices as the encoder's began, biases 0; norms keep the ones they were built with."""
    with torch.no_grad():
        for module in head.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                module.weight.normal_(0.0, INIT_STD, generator=generator)
            if isinstance(module, nn.Linear):
                module.bias.zero_()
