"""Recurrent layers over packed texts: each text by itself, no padding in the result."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence, unpack_sequence

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


class BiLstm(nn.Module):
    """A bidirectional LSTM over the rows of each text: (T, D) -> (T, 2W)."""

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.width = 2 * width
        self.cells = nn.LSTM(hidden, width, batch_first=True, bidirectional=True)

    def forward(self, rows: Tensor, lengths: Sequence[int]) -> Tensor:
        """Texts of these lengths, one after another; none sees another: (T, D) -> (T, 2W)."""
        texts = pack_sequence(list(torch.split(rows, list(lengths))), enforce_sorted=False)
        read, _ = pad_packed_sequence(self.cells(texts)[0], batch_first=True)
        return torch.cat([text[:length] for text, length in zip(read, lengths, strict=True)])
