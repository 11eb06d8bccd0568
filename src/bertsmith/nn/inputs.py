"""Inputs: everything a model reads of a batch, in one object that moves between devices whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertsmith.errors import TextError
from bertsmith.nn.layout import FULL, Layout, Sees

SEGMENTS = "segments"  # the channel of sentence A and B
TASKS = "tasks"  # the channel of pre-training tasks (ERNIE 2.0)
CHARACTERS = "characters"  # (T, n) of each token, for encoders of words
Numbers = NDArray[np.integer]


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """Packed texts: token `ids` (T,) and the `layout` of the T rows.

    `channels` are further numbers per row, each (T,) or (T, n), that a model has an embedding for;
    "segments" is one of them. `vectors` (P, E) take the place of the token embeddings of
    `vector_rows` (P,), for soft prompts and mixtures of tokens; the ids there are ignored.
    """

    ids: Tensor
    layout: Layout
    channels: Mapping[str, Tensor] = field(default_factory=dict)
    vectors: Tensor | None = None
    vector_rows: Tensor | None = None

    @classmethod
    def of(
        cls,
        ids: Numbers,
        lengths: Sequence[int],
        *,
        positions: Numbers | None = None,
        sees: Sees | None = None,
        channels: Mapping[str, Numbers] | None = None,
    ) -> Inputs:
        """From the arrays of a batch.

        Without `positions` they count from 0 in each text, without `sees` all rows see all.
        """
        layout = Layout.of(lengths, sees=sees or FULL)
        if positions is not None:
            layout = replace(layout, positions=_tensor(positions))
        named = {name: _tensor(numbers) for name, numbers in (channels or {}).items()}
        return cls(_tensor(ids), layout, named)

    @classmethod
    def padded(cls, ids: Tensor, attention_mask: Tensor, segments: Tensor | None = None) -> Inputs:
        """From a padded batch: ids, mask and segments (B, L), padding on the right or the left.

        Positions count from the first real token. `layout.to_padded(hidden, attention_mask)`
        brings the result back to (B, L, D).
        """
        if ids.dim() != 2 or ids.shape != attention_mask.shape:
            raise TextError(
                f"ids {tuple(ids.shape)} and attention_mask {tuple(attention_mask.shape)} must "
                "both be (B, L)"
            )
        inside = attention_mask.bool()
        runs = (inside[:, 1:] & ~inside[:, :-1]).sum(1) + inside[:, :1].sum(1)
        if bool((runs > 1).any()):
            text = int((runs > 1).nonzero()[0, 0])
            raise TextError(f"the attention_mask of text {text} has a hole: pad at the ends only")
        layout = Layout.of(inside.sum(1).tolist(), device=ids.device)
        channels = {} if segments is None else {SEGMENTS: segments[inside]}
        return cls(ids[inside], layout, channels)

    def to(self, device: torch.device | str) -> Inputs:
        """The same on a device."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        return Inputs(
            self.ids.to(device, non_blocking=True),
            self.layout.to(device),
            {name: part.to(device, non_blocking=True) for name, part in self.channels.items()},
            moved(self.vectors),
            moved(self.vector_rows),
        )

    def without(self, channel: str) -> Inputs:
        """The same without one channel."""
        if channel not in self.channels:
            return self
        rest = {name: part for name, part in self.channels.items() if name != channel}
        return replace(self, channels=rest)

    def check(self) -> None:
        """Refuse parts that do not fit together, by name."""
        rows = self.layout.rows
        positions = self.layout.positions
        if self.ids.shape != (rows,) or positions.shape != (rows,):
            raise TextError(
                f"ids {tuple(self.ids.shape)} and positions {tuple(positions.shape)} must both "
                f"be ({rows},), the sum of the lengths"
            )
        for name, part in self.channels.items():
            if part.shape[:1] != (rows,) or part.dim() > 2 or (name == SEGMENTS and part.dim() > 1):
                raise TextError(f"{name} must be ({rows},) like the ids, not {tuple(part.shape)}")
        self.layout.sees.check(self.layout.lengths)
        given, at = self.vectors, self.vector_rows
        if (given is None) != (at is None):
            raise TextError("vectors and vector_rows belong together: give both or neither")
        if given is not None and at is not None and given.shape[:1] != at.shape:
            raise TextError(
                f"{len(given)} vectors for {len(at)} vector_rows: give one vector per row"
            )


def _tensor(numbers: Numbers) -> Tensor:
    return torch.from_numpy(np.asarray(numbers).astype(np.int64, copy=False))
