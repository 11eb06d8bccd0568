"""Nearest passages by brute force: for a few thousand vectors nothing else is needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nearest(scores: NDArray[np.float32], count: int) -> list[int]:
    """The places of the `count` highest of (n,) scores, best first; ties keep their order."""
    best: list[int] = np.argsort(-scores, kind="stable")[:count].tolist()
    return best
