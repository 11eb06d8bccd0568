"""Windows as a kernel wrote them down, to compute the same steps elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_HEAD = 4


@dataclass(frozen=True, slots=True, eq=False)
class TracedWindow:
    """One window: `neighbors` (M,) and how often each occurs, `outputs` (N,) with `signs` (1 for
    what is right, -1 for what is wrong) and how often each was drawn.
    """

    rate: float
    center: int
    neighbors: NDArray[np.int32]
    weights: NDArray[np.int32]
    outputs: NDArray[np.int32]
    signs: NDArray[np.int32]
    sizes: NDArray[np.int32]


def traced_windows(trace: NDArray[np.int32]) -> Iterator[TracedWindow]:
    """The windows of a trace."""
    at = 0
    while at < len(trace):
        rate = float(trace[at : at + 1].view(np.float32)[0])
        center, m, n = (int(number) for number in trace[at + 1 : at + _HEAD])
        at += _HEAD
        neighbors, weights = trace[at : at + m], trace[at + m : at + 2 * m]
        at += 2 * m
        outputs, signed = trace[at : at + n], trace[at + n : at + 2 * n]
        at += 2 * n
        yield TracedWindow(
            rate, center, neighbors, weights, outputs, np.sign(signed), np.abs(signed)
        )
