"""The default learning rate: by the width of a model, or by the size of a head's input."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# 1e-4 suits a width of 384 (all-MiniLM-L6-v2). In inverse proportion, 128 gets 3e-4, which stands
# in the grid for compact BERTs (Turc et al. 2019, arXiv:1908.08962), and 768 gets 5e-5, which
# stands in that of BERT itself (Devlin et al. 2018).
WIDTH, RATE_AT_WIDTH = 384, 1e-4

# How far the first steps of Adam move logits, which is its rate times the sum of a vector's sizes.
# Vectors of some models and layers are ten times as long as those of others: one rate for all would
# let length decide which is best.
STRIDE = 0.3


def by_width(hidden: int) -> float:
    """For training all weights: the wider the model, the lower."""
    return _two_digits(RATE_AT_WIDTH * WIDTH / hidden)


def by_size(vectors: NDArray[np.float32]) -> float:
    """For training a head alone on vectors (N, W)."""
    size = float(np.abs(vectors).sum(axis=1).mean())
    return _two_digits(STRIDE / max(size, 1e-6))


def _two_digits(rate: float) -> float:
    """Rounded, so that a run that resumes elsewhere gets the same."""
    return float(f"{rate:.1e}")
