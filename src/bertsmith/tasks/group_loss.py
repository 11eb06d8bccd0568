"""Cross entropy over groups of neighboring rows: the tokens of a passage, the choices of a row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from bertsmith.nn.layout import real


def group_cross_entropy(scores: Tensor, sizes: Sequence[int], targets: Tensor) -> Tensor:
    """One right row in each group: (sum of sizes,), B sizes, (B,) places in the group -> sum ()."""
    held = real(sizes, device=scores.device)  # (B, M)
    # A rectangle, not scattered sums: those add in any order on a GPU, and a run must repeat.
    empty = torch.full(held.shape, -torch.inf, device=scores.device)
    return F.cross_entropy(empty.masked_scatter(held, scores.float()), targets, reduction="sum")
