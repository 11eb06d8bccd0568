"""The order in which training reads its rows: an endless row of epochs, each shuffled anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bertsmith.training.execution.ranks import Ranks

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


class EpochRows:
    """Which rows each step reads, on any number of ranks alike.

    Step s has readings s x batch to (s + 1) x batch of an endless row of epochs; each rank takes an
    equal share of them, in order.
    """

    def __init__(
        self,
        size: int,
        *,
        batch: int,
        seed: int,
        ranks: Ranks = Ranks(),  # noqa: B008 - one process
        draw: Draw | None = None,
    ) -> None:
        self._size, self._batch, self._ranks = size, batch, ranks
        self._epochs = Epochs(size, seed, draw)

    @property
    def steps_of_epoch(self) -> float:
        """How many steps read every row once."""
        return self._size / self._batch

    def row(self, reading: int) -> int:
        """The row of a reading, counted from 0 over all epochs."""
        return self._epochs.row(reading)

    def rows(self, step: int) -> Numbers:
        """The rows of a step, of all ranks."""
        return self.of(self._readings(step))

    def own(self, step: int) -> Numbers:
        """This rank's readings of a step."""
        return self._mine(self._readings(step))

    def own_places(self) -> Numbers:
        """Where this rank's rows stand among all rows of a step."""
        return self._mine(np.arange(self._batch))

    def of(self, readings: Numbers) -> Numbers:
        """The rows of some readings."""
        return np.array([self._epochs.row(int(one)) for one in readings], dtype=np.int64)

    def words(self, step: int, what: str = "training rows") -> str:
        """Which rows a step reads, in words."""
        numbers = self.rows(step).tolist()
        more = " ..." if len(numbers) > 8 else ""
        return f"{what} {numbers[:8]}{more} (all ranks)"

    def _readings(self, step: int) -> Numbers:
        return np.arange(step * self._batch, (step + 1) * self._batch)

    def _mine(self, numbers: Numbers) -> Numbers:
        return np.array_split(numbers, self._ranks.world)[self._ranks.rank]
