"""One vector a text from its rows: (T, D) and lengths -> (B, D)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bertsmith.errors import TextError, unknown

Pooling = Callable[[Tensor, Tensor], Tensor]


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
