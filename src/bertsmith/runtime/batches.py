"""Texts sorted by length and packed into batches of rows under a token budget, nothing padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bertsmith.nn.inputs import Inputs
from bertsmith.nn.layout import Sees

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


def pack_rows(ids: Sequence[Ids], *, budget: int) -> list[RowBatch]:
    """Batches of at most `budget` tokens (a longer text stands alone), longest texts first.

    Long batches go first so that the last ones, which decide when all streams end, are cheap.
    """
    lengths = [len(text) for text in ids]
    order = sorted(range(len(ids)), key=lambda number: (-lengths[number], number))
    batches: list[RowBatch] = []
    chosen: list[int] = []
    tokens = 0
    for number in order:
        if chosen and tokens + lengths[number] > budget:
            batches.append(_batch(chosen, ids))
            chosen, tokens = [], 0
        chosen.append(number)
        tokens += lengths[number]
    if chosen:
        batches.append(_batch(chosen, ids))
    return batches


def _batch(numbers: Sequence[int], ids: Sequence[Ids]) -> RowBatch:
    chosen = [ids[number] for number in numbers]
    starts = np.zeros(len(chosen) + 1, dtype=np.int32)
    np.cumsum([len(text) for text in chosen], out=starts[1:])
    return RowBatch(tuple(numbers), np.concatenate(chosen).astype(np.int32, copy=False), starts)
