"""Recurrent layers over packed texts: each text by itself, no padding in the result."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from bertsmith.nn.layout import Layout


class BiGru(nn.Module):
    """A bidirectional GRU that starts anew in every text."""

    def __init__(self, inputs: int, width: int, *, layers: int = 1) -> None:
        super().__init__()
        self.width = 2 * width
        self.gru = nn.GRU(inputs, width, num_layers=layers, bidirectional=True)

    def forward(self, rows: Tensor, layout: Layout) -> Tensor:
        """Rows of the texts of a layout, (T, D) -> (T, 2 width)."""
        texts = torch.split(rows, list(layout.lengths))
        packed, _ = self.gru(pack_sequence(list(texts), enforce_sorted=False))
        return torch.cat(unpack_sequence(packed))
