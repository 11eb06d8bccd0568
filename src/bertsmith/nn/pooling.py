"""One vector per text from its rows: (T, D) and lengths -> (B, D); one layer from several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertsmith.errors import TextError, unknown

Pooling = Callable[[Tensor, Tensor], Tensor]
_CONSTANT = 1e-6  # a smaller deviation is rounding: the column says nothing


class LayerMix(nn.Module):
    """gamma sum_j softmax(w)_j h_j, with learned w and gamma: (n, ..., D) -> (..., D).

    Peters et al. 2018, arXiv:1802.05365. `standardize` gives every column of every layer mean 0 and
    deviation 1 first: layers of an LSTM lie far from 0, where a new head learns slowly.
    """

    centers: Tensor
    scales: Tensor

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers))
        self.gamma = nn.Parameter(torch.ones(1))
        self.register_buffer("centers", torch.zeros(layers, width))
        self.register_buffer("scales", torch.ones(layers, width))

    def standardize(self, rows: Iterable[NDArray[np.float32]]) -> None:
        """Take means and deviations from the rows of texts, (n, L, D) each."""
        count, total, squares = 0, np.zeros(self.centers.shape), np.zeros(self.centers.shape)
        for layers in rows:
            wide = layers.astype(np.float64)
            count += wide.shape[1]
            total += wide.sum(1)
            squares += (wide**2).sum(1)
        means = total / count
        deviations = np.sqrt(np.maximum(squares / count - means**2, 0.0))
        deviations[deviations < _CONSTANT] = 1.0
        self.centers.copy_(torch.from_numpy(means))
        self.scales.copy_(torch.from_numpy(deviations))

    def forward(self, layers: Tensor) -> Tensor:
        """(n, ..., D) -> (..., D)."""
        shares = self.weights.softmax(dim=0)[:, None] / self.scales  # (n, D)
        rows = layers.flatten(1, -2)  # (n, T, D)
        mixed = torch.addcmul(-(shares * self.centers).sum(0), rows[0], shares[0])
        for layer, share in zip(rows[1:], shares[1:], strict=True):
            mixed = torch.addcmul(mixed, layer, share)
        return (self.gamma * mixed).view(layers.shape[1:])


def mean(rows: Tensor, lengths: Tensor) -> Tensor:
    """The average row."""
    return _sums(rows, lengths) / lengths[:, None]


def mean_sqrt_len(rows: Tensor, lengths: Tensor) -> Tensor:
    """The sum divided by the square root of the length."""
    return _sums(rows, lengths) / lengths[:, None].to(rows.dtype).sqrt()


def weighted_mean(rows: Tensor, lengths: Tensor) -> Tensor:
    """The average with weights 1, 2, 3 ... by place (SGPT, Muennighoff 2022, arXiv:2202.08904)."""
    ends = lengths.cumsum(0)
    starts = (ends - lengths).repeat_interleave(lengths, output_size=len(rows))
    places = torch.arange(1, len(rows) + 1, device=rows.device) - starts  # (T,)
    total = (lengths * (lengths + 1) / 2).to(rows.dtype)
    return _sums(rows * places[:, None].to(rows.dtype), lengths) / total[:, None]


def maximum(rows: Tensor, lengths: Tensor) -> Tensor:
    """The largest value of each column."""
    return torch.segment_reduce(rows, "max", lengths=lengths, unsafe=True)


def first(rows: Tensor, lengths: Tensor) -> Tensor:
    """The first row, [CLS] in BERT."""
    return rows.index_select(0, lengths.cumsum(0) - lengths)


def last(rows: Tensor, lengths: Tensor) -> Tensor:
    """The last row."""
    return rows.index_select(0, lengths.cumsum(0) - 1)


POOLINGS: dict[str, Pooling] = {
    "mean": mean,
    "first": first,
    "max": maximum,
    "mean_sqrt_len": mean_sqrt_len,
    "weighted_mean": weighted_mean,
    "last": last,
}


def pool(name: str, rows: Tensor, lengths: Sequence[int]) -> Tensor:
    """Pool each text's rows by the pooling of that name: (T, D) -> (B, D)."""
    if name not in POOLINGS:
        raise unknown("pooling", name, POOLINGS)
    if sum(lengths) != len(rows):
        raise TextError(f"the lengths add up to {sum(lengths)}, but there are {len(rows)} rows")
    if min(lengths, default=1) < 1:
        raise TextError(
            f"text {list(lengths).index(0)} has no tokens, hence no vector; leave it out"
        )
    sizes = torch.tensor(lengths, dtype=torch.long, device=rows.device)
    return POOLINGS[name](rows, sizes)


def _sums(rows: Tensor, lengths: Tensor) -> Tensor:
    """(T, D) -> (B, D)."""
    return torch.segment_reduce(rows, "sum", lengths=lengths, unsafe=True)
