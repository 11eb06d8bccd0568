"""The next micro-batches, prepared in a thread while the model computes, always the same."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from typing import Any, Self

from bertsmith.training.loop.workload import Workload

DEPTH = 2  # steps prepared ahead


class Prefetch:
    """Hands out the micro-batches of steps in the order of the requests.

    The share of training is fixed when a step is requested, `DEPTH` steps ahead, so that what a
    step sees does not depend on how fast the thread is.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._wanted: queue.SimpleQueue[tuple[int, float] | None] = queue.SimpleQueue()
        self._ready: queue.SimpleQueue[Sequence[Any] | BaseException] = queue.SimpleQueue()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._closing = True
        self._wanted.put(None)
        self._thread.join(timeout=10.0 if error[0] is None else 0.5)

    def request(self, step: int, share: float) -> None:
        """Request the micro-batches of a step; the caller bounds how many are under way."""
        self._wanted.put((step, share))

    def take(self) -> Sequence[Any]:
        """The micro-batches requested first; an error of the thread is raised here."""
        batches = self._ready.get()
        if isinstance(batches, BaseException):
            raise batches
        return batches

    def _run(self) -> None:
        while (wanted := self._wanted.get()) is not None and not self._closing:
            try:
                self._ready.put(self._workload.micro_batches(*wanted))
            except BaseException as error:  # raised again where the step is taken
                self._ready.put(error)
                return
