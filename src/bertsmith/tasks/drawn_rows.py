"""Some rows of long texts, drawn anew in every step: enough to learn a mean from.

The last block is then computed for those alone: at 256 tokens a tenth of a step is saved, and what
is learned cannot hang on single tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def drawn_rows(lengths: Sequence[int], most: int) -> tuple[Tensor, tuple[int, ...]]:
    """Rows (P,) of texts that stand one after another, in their order, and how many of each.

    Of a text of more than `most` rows that many, each set of them as likely as any other; of
    others all. The same after the same `torch.manual_seed`.
    """
    rows, start = [], 0
    for length in lengths:
        whole = length <= most
        of_text = torch.arange(length) if whole else torch.randperm(length)[:most].sort().values
        rows.append(of_text + start)
        start += length
    return torch.cat(rows), tuple(min(length, most) for length in lengths)
