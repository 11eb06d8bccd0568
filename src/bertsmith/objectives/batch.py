"""TrainBatch: rows with something hidden, and what is asked of which row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertsmith.corpus.rows import Ints, RowsBatch
from bertsmith.nn.inputs import SEGMENTS, Inputs
from bertsmith.nn.layout import Layout


@dataclass(frozen=True, slots=True)
class Score:
    """How many of `count` predictions were right."""

    correct: int | Tensor
    count: int

    def __add__(self, other: Score) -> Score:
        return Score(self.correct + other.correct, self.count + other.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one objective asks: `targets` (P,) of the rows `at`.

    `at` (P,), or (P, n) when a prediction reads n rows, counts among the rows of the batch until
    `TrainBatch` makes it count among the rows that are read. `more` holds what only the objective
    itself understands, P of each.
    """

    at: Tensor
    targets: Tensor
    more: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """P, the number of predictions."""
        return self.targets.shape[0]

    def to(self, device: torch.device | str) -> Asked:
        """The same on a device."""
        return Asked(
            at=self.at.to(device, non_blocking=True),
            targets=self.targets.to(device, non_blocking=True),
            more={name: part.to(device, non_blocking=True) for name, part in self.more.items()},
        )


def rows_inputs(rows: RowsBatch, ids: Ints | None = None) -> Inputs:
    """Rows as a model reads them, or with other `ids` (T,) in the same places."""
    return Inputs.of(
        rows.ids if ids is None else ids,
        rows.lengths,
        positions=rows.positions,
        sees=rows.sees,
        channels={SEGMENTS: rows.segments, **rows.channels},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBatch:
    """A micro-batch: what the model reads, and what is asked, by objective.

    `rows` (P,) are the rows that somebody reads, None for all; the `at` of what is asked counts
    among them.
    """

    inputs: Inputs
    rows: Tensor | None
    asked: Mapping[str, Asked]

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        asked: Mapping[str, Asked],
        *,
        all_rows: bool = False,
    ) -> TrainBatch:
        """A batch that reads exactly the rows that are asked about, or all of them."""
        if all_rows:
            return cls(inputs=inputs, rows=None, asked=asked)
        read = torch.zeros(len(inputs.ids), dtype=torch.bool)
        for one in asked.values():
            read[one.at.flatten()] = True
        number = read.cumsum(0) - 1
        asked = {
            name: Asked(at=number[one.at], targets=one.targets, more=one.more)
            for name, one in asked.items()
        }
        rows = read.nonzero().flatten()
        return cls(inputs=inputs, rows=rows, asked=asked)

    @property
    def ids(self) -> Tensor:
        """(T,) the token ids."""
        return self.inputs.ids

    @property
    def layout(self) -> Layout:
        """The layout of the T rows."""
        return self.inputs.layout

    @property
    def tokens(self) -> int:
        """T, special tokens included; nothing is padding."""
        return self.ids.shape[0]

    @property
    def counts(self) -> dict[str, int]:
        """The predictions of each objective, known before the forward pass."""
        return {name: asked.count for name, asked in self.asked.items()}

    def to(self, device: torch.device | str) -> TrainBatch:
        """The same batch on a device."""
        return TrainBatch(
            inputs=self.inputs.to(device),
            rows=None if self.rows is None else self.rows.to(device, non_blocking=True),
            asked={name: asked.to(device) for name, asked in self.asked.items()},
        )
