"""Ids to rows: token, position and segment vectors summed, normed, projected if factorized."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from bertsmith.errors import TextError
from bertsmith.nn.dropout import dropout


class Embeddings(nn.Module):
    """Token, learned position (when `rows`) and segment (when `segments`) vectors, summed."""

    def __init__(
        self,
        vocab_size: int,
        width: int,
        *,
        rows: int = 0,
        first: int = 0,
        segments: int = 0,
        project: int | None = None,
        norm_eps: float = 1e-12,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.first = first
        self.dropout = dropout
        self.tokens = _table(vocab_size, width)
        self.positions = _table(rows, width) if rows else None
        self.segments = _table(segments, width) if segments else None
        self.norm = nn.LayerNorm(width, eps=norm_eps)
        self.project = nn.Linear(width, project) if project else None

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        """(T,), (T,), (T,) -> (T, D)."""
        summed = self.tokens(ids)  # (T, E)
        if self.segments is not None:
            weight = self.segments.weight
            summed = summed + (weight[0] if segments is None else self.segments(segments))
        elif segments is not None and bool(torch.any(segments != 0)):
            raise TextError("this model has no segment embedding, but some segment is not 0")
        if self.positions is not None:
            summed = summed + self.positions(positions + self.first)
        rows: Tensor = self.norm(summed)
        if self.training:
            rows = dropout(rows, self.dropout)
        return rows if self.project is None else self.project(rows)


def _table(rows: int, width: int) -> nn.Embedding:
    """An embedding left empty: drawing its values on "meta" would import torch's compiler."""
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width))
