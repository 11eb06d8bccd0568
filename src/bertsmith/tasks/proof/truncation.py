"""What cutting texts cost: the figures of rows that were cut beside those that were not."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.metrics import METRICS
from bertsmith.metrics.arrays import Bools
from bertsmith.tasks.proof.rows import Rows


def truncation(rows: Rows) -> dict[str, Any]:
    """Rows cut, tokens lost, and the figures of both kinds of rows, None for a kind without one."""
    cut = np.array([one.cut for one in rows.predictions], dtype=np.int64)
    lost: Bools = cut > 0
    return {
        "rows_cut": int(lost.sum()),
        "share": float(lost.mean()),
        "tokens_cut": int(cut.sum()),
        "most_tokens_cut": int(cut.max(initial=0)),
        "cut": _figures(rows, lost),
        "whole": _figures(rows, ~lost),
    }


def _figures(rows: Rows, chosen: Bools) -> dict[str, float] | None:
    if not chosen.any():
        return None
    return METRICS[rows.task].figures(rows.table[chosen], rows.labels)
