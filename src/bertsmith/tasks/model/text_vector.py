"""How a text becomes one vector: which layers are read, and how rows become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bertsmith.config import Settings
from bertsmith.errors import ConfigError
from bertsmith.nn.pooling import pool

Layers = Literal["last", "sum4", "concat4", "weighted", "all_first"] | Annotated[int, Field(ge=0)]
Pooling = Literal["published", "first", "mean", "max", "attention"]
LAST_FOUR = 4


class VectorSettings(Settings):
    """Which rows of which layers make the vector of a text.

    `published`: as the model's own family classifies, so that other libraries load the folder.
    `layers`: the last, one by number (0: the embeddings), the sum or all columns of the last four,
    a mean with learned weights (Peters et al. 2018, arXiv:1802.05365), or the first tokens of all
    layers side by side.
    """

    pooling: Pooling = "published"
    layers: Layers = "last"

    @property
    def is_published(self) -> bool:
        """Whether the model's own head does all of it."""
        return self.pooling == "published"

    @property
    def needs_layers(self) -> bool:
        """Whether other layers than the last are read."""
        return self.layers != "last"


class TextVector(nn.Module):
    """The hidden rows of texts as one vector each: (T, D) of every layer -> (B, W)."""

    def __init__(self, settings: VectorSettings, *, hidden: int, layers: int) -> None:
        """`layers` is the number of blocks N; there are N + 1 layers to read."""
        super().__init__()
        if settings.is_published:
            raise ConfigError("published pooling belongs to the model's own head")
        if isinstance(settings.layers, int) and settings.layers > layers:
            raise ConfigError(f"there is no layer {settings.layers}; the model has {layers}")
        if settings.layers in ("sum4", "concat4") and layers < LAST_FOUR:
            raise ConfigError(f"{settings.layers} reads four layers; the model has {layers}")
        self.settings = settings
        wide = {"concat4": LAST_FOUR, "all_first": layers + 1}
        self.width = hidden * wide.get(str(settings.layers), 1)
        self.mix = nn.Parameter(torch.zeros(layers + 1)) if settings.layers == "weighted" else None
        attends = settings.pooling == "attention"
        self.query = nn.Parameter(torch.zeros(self.width)) if attends else None

    def forward(self, layers: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
        """All layers, or the last alone if that is what is read -> (B, W)."""
        if self.settings.layers == "all_first":
            return torch.cat([pool("first", rows, lengths) for rows in layers], dim=1)
        rows = self._rows(layers)
        if self.query is None:
            return pool(self.settings.pooling, rows, lengths)
        return self._attended(rows, self.query, lengths)

    def _rows(self, layers: Sequence[Tensor]) -> Tensor:
        """(T, W)."""
        which = self.settings.layers
        if which == "sum4":
            return torch.stack(list(layers[-LAST_FOUR:])).sum(dim=0)
        if which == "concat4":
            return torch.cat(list(layers[-LAST_FOUR:]), dim=1)
        if self.mix is not None:
            weights = self.mix.softmax(dim=0)
            return (torch.stack(list(layers)) * weights[:, None, None]).sum(dim=0)
        return layers[which] if isinstance(which, int) else layers[-1]

    @staticmethod
    def _attended(rows: Tensor, query: Tensor, lengths: Sequence[int]) -> Tensor:
        """A mean whose weights are a softmax over each text: (T, W) -> (B, W)."""
        sizes = torch.tensor(lengths, device=rows.device)
        scores = (rows @ query) / rows.shape[1] ** 0.5  # (T,)
        top = torch.segment_reduce(scores, "max", lengths=sizes, unsafe=True)
        weights = (scores - top.detach().repeat_interleave(sizes)).exp()
        total = torch.segment_reduce(weights, "sum", lengths=sizes, unsafe=True)
        summed = torch.segment_reduce(rows * weights[:, None], "sum", lengths=sizes, unsafe=True)
        return summed / total[:, None]
