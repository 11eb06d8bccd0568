"""Predicted numbers: points for a plot, and how the differences are spread."""

from __future__ import annotations

from typing import Any

import numpy as np

from bertsmith.tasks.proof.rows import Rows

MOST_POINTS = 800
BINS = 21


def numbers(rows: Rows) -> dict[str, Any] | None:
    """Truth and answer of up to 800 rows; mean, spread and bins of answer less truth."""
    if rows.task != "regress":
        return None
    truth, said = np.asarray(rows.truth, float), np.asarray(rows.said, float)
    away = said - truth
    step = -(-len(truth) // MOST_POINTS)
    reach = float(np.abs(away).max()) or 1.0
    counts, borders = np.histogram(away, bins=BINS, range=(-reach, reach))
    return {
        "points": np.column_stack([truth, said])[::step].round(6),
        "points_of": len(truth),
        "bias": away.mean(),
        "spread": away.std(),
        "mean_absolute_error": np.abs(away).mean(),
        "p90_absolute_error": np.quantile(np.abs(away), 0.9),
        "bins": [
            {"low": low, "high": high, "count": count}
            for low, high, count in zip(borders[:-1], borders[1:], counts, strict=True)
        ],
    }
