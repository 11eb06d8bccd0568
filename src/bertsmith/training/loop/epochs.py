"""The order in which training reads its rows: an endless row of epochs, each shuffled anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Draw = Callable[[np.random.Generator], Numbers]


class Epochs:
    """Which row each reading is of; a function of seed and number, on any rank alike.

    `draw` gives the rows of an epoch in another way than by shuffling all of them.
    """

    def __init__(self, size: int, seed: int, draw: Draw | None = None) -> None:
        self._size = size
        self._seed = seed
        self._draw = draw or (lambda random: random.permutation(size))
        self._order: tuple[int, Numbers] | None = None

    def row(self, reading: int) -> int:
        """The row of a reading, counted from 0 over all epochs."""
        epoch, place = divmod(reading, self._size)
        if self._order is None or self._order[0] != epoch:
            key = np.array([self._seed, epoch], dtype=np.uint64)
            random = np.random.Generator(np.random.Philox(key=key))
            self._order = (epoch, self._draw(random).astype(np.int64))
        return int(self._order[1][place])
