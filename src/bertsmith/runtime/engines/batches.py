"""RowBatch: texts packed as rows without padding, in the arrays that engines read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Sees
from bertsmith.nn.packing import pack

Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Some texts as rows: `ids` (T,), `starts` (B + 1,), and the number of each text.

    `channels` are further numbers per row for the model's embeddings ("segments" of a pair),
    `positions` (T,) are None where they count from 0 in each text, `sees` where all see all.
    """

    texts: tuple[int, ...]
    ids: Ids
    starts: Ids
    channels: Mapping[str, Ids] = field(default_factory=dict)
    positions: Ids | None = None
    sees: Sees | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens of each text."""
        return tuple(np.diff(self.starts).tolist())

    def inputs(self) -> Inputs:
        """The batch as a model reads it."""
        return Inputs.of(
            self.ids,
            self.lengths,
            positions=self.positions,
            sees=self.sees,
            channels=self.channels,
        )


def pack_rows(ids: Sequence[Ids], *, budget: int, most_texts: int | None = None) -> list[RowBatch]:
    """Texts as batches of at most `budget` tokens, the longest first (see `nn.packing`).

    `most_texts` divides batches of more texts.
    """
    batches = []
    for numbers in pack([len(text) for text in ids], budget):
        size = most_texts or len(numbers)
        batches += [
            row_batch(numbers[start : start + size], ids) for start in range(0, len(numbers), size)
        ]
    return batches


def row_batch(numbers: Sequence[int], ids: Sequence[Ids]) -> RowBatch:
    """Some of the texts, by number, as one batch."""
    chosen = [ids[number] for number in numbers]
    starts = np.zeros(len(chosen) + 1, dtype=np.int32)
    np.cumsum([len(text) for text in chosen], out=starts[1:])
    return RowBatch(tuple(numbers), np.concatenate(chosen).astype(np.int32, copy=False), starts)
