"""PretrainBatch: corrupted rows, and what is predicted from which of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from bertsmith.corpus.rows import Ints, RowsBatch
from bertsmith.nn.inputs import SEGMENTS, Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """What one objective predicts: the classes or tokens `of` (P,) from the rows `at`.

    `at` (P,), or (P, n) when a prediction reads n rows, counts among the rows of the batch until
    `PretrainBatch` makes it count among the rows that are read. `more` holds what only the
    objective itself understands, P of each.
    """

    at: Tensor
    of: Tensor
    more: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """P, the number of predictions."""
        return self.of.shape[0]

    def to(self, device: torch.device | str) -> Targets:
        """The same on a device."""
        return Targets(
            at=self.at.to(device, non_blocking=True),
            of=self.of.to(device, non_blocking=True),
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
class PretrainBatch:
    """A micro-batch: what the model reads, and the targets of each objective.

    `rows` (P,) are the rows that some objective reads, None for all; the `at` of targets counts
    among them.
    """

    inputs: Inputs
    rows: Tensor | None
    targets: Mapping[str, Targets]

    @classmethod
    def of(cls, inputs: Inputs, targets: Mapping[str, Targets]) -> PretrainBatch:
        """A batch that reads exactly the rows of its targets."""
        read = torch.zeros(len(inputs.ids), dtype=torch.bool)
        for one in targets.values():
            read[one.at.flatten()] = True
        number = read.cumsum(0) - 1
        return cls(
            inputs=inputs,
            rows=read.nonzero().flatten(),
            targets={name: replace(one, at=number[one.at]) for name, one in targets.items()},
        )

    @property
    def tokens(self) -> int:
        """T, special tokens included; nothing is padding."""
        return self.inputs.ids.shape[0]

    @property
    def counts(self) -> dict[str, int]:
        """The predictions of each objective, known before the forward pass."""
        return {name: targets.count for name, targets in self.targets.items()}

    def to(self, device: torch.device | str) -> PretrainBatch:
        """The same batch on a device."""
        return PretrainBatch(
            inputs=self.inputs.to(device),
            rows=None if self.rows is None else self.rows.to(device, non_blocking=True),
            targets={name: targets.to(device) for name, targets in self.targets.items()},
        )
