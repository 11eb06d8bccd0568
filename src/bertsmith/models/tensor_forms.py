"""Forms in which published models store a tensor of ours; each one can be undone exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Plain:
    """Stored as it is."""

    def to_stored(self, ours: Tensor, heads: int) -> Tensor:
        """Our tensor as it is stored; `heads` is that of the model."""
        return ours

    def to_ours(self, stored: Tensor) -> Tensor:
        """The other way."""
        return stored


@dataclass(frozen=True, slots=True)
class Transposed:
    """Weights as (in, out), GPT's Conv1D; biases as they are."""

    def to_stored(self, ours: Tensor, heads: int) -> Tensor:
        """(out, in) -> (in, out)."""
        return ours.t().contiguous()

    def to_ours(self, stored: Tensor) -> Tensor:
        """(in, out) -> (out, in)."""
        return stored.t().contiguous()


@dataclass(frozen=True, slots=True)
class AsRow:
    """A vector as a matrix of one row, BART's final_logits_bias."""

    def to_stored(self, ours: Tensor, heads: int) -> Tensor:
        """(V,) -> (1, V)."""
        return ours[None].contiguous()

    def to_ours(self, stored: Tensor) -> Tensor:
        """(1, V) -> (V,)."""
        return stored[0].contiguous()


@dataclass(frozen=True, slots=True)
class SplitHeads:
    """Projections as (D, H, K), XLNet's einsum form; `outward`: from heads back to D."""

    outward: bool = False

    def to_stored(self, ours: Tensor, heads: int) -> Tensor:
        """(H K, D), or outward (D, H K) -> (D, H, K)."""
        rows = ours if self.outward else ours.t()
        return rows.reshape(rows.shape[0], heads, -1).contiguous()

    def to_ours(self, stored: Tensor) -> Tensor:
        """(D, H, K) -> (H K, D), or outward (D, H K)."""
        rows = stored.flatten(1)
        return rows.contiguous() if self.outward else rows.t().contiguous()


@dataclass(frozen=True, slots=True)
class Joined:
    """Part `index` of `count` equal ones in a single tensor, along its last dimension.

    `form` is that of each part: Transposed in GPT's c_attn, whose outputs stand last.
    """

    index: int
    count: int
    form: Plain | Transposed = Plain()

    def to_stored(self, ours: Tensor, heads: int) -> Tensor:
        """This part alone; `join` makes the stored tensor of all parts."""
        return self.form.to_stored(ours, heads)

    def to_ours(self, stored: Tensor) -> Tensor:
        """This part of the stored tensor."""
        return self.form.to_ours(stored.chunk(self.count, dim=-1)[self.index]).contiguous()


Form = Plain | Transposed | AsRow | SplitHeads | Joined
PLAIN = Plain()


@dataclass(frozen=True, slots=True)
class StoredAs:
    """A published name whose tensor has another form than ours."""

    name: str
    form: Form


def join(parts: Sequence[tuple[Joined, Tensor]]) -> Tensor:
    """The stored tensor of all its parts, each as `Joined.to_stored` gives it."""
    import torch

    ordered = sorted(parts, key=lambda part: part[0].index)
    return torch.cat([tensor for _, tensor in ordered], dim=-1)
