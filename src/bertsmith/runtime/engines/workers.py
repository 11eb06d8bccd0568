"""Long-lived threads that run batches: a bounded queue, futures, cancellation, safe under fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from bertsmith.errors import HardwareError

T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """Threads that start with the first work and end with `close`, this object or the process.

    At most `4 * threads` pieces of work are accepted at a time; `submit` waits for room. A process
    that was forked from this one has workers of its own.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._closed = False
        self._pool: ThreadPoolExecutor | None = None
        self._reset()
        _EVERY.add(self)

    def submit(self, work: Callable[[], R]) -> Future[R]:
        """Have a worker call `work`; a future that is cancelled before its turn never runs."""
        room = self._room
        room.acquire()
        try:
            with self._lock:
                if self._closed:
                    raise HardwareError("the model was closed; load it again")
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self.threads, "bertsmith-worker")
                future = self._pool.submit(work)
        except BaseException:
            room.release()
            raise
        future.add_done_callback(lambda _: room.release())
        return future

    def close(self) -> None:
        """Cancel what waits, let what runs end, and accept nothing more."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _reset(self) -> None:
        self.turn = threading.Lock()  # of an engine that runs one batch at a time
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(4 * self.threads)
        self._pool = None


_EVERY: weakref.WeakSet[Workers] = weakref.WeakSet()


def _after_fork() -> None:
    """Threads do not survive a fork, and locks may have been held by one of them."""
    for workers in _EVERY:
        workers._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_all(
    items: Iterable[T], submit: Callable[[T], Future[R]], *, ahead: int
) -> Iterator[tuple[T, R]]:
    """Submit items and yield (item, result) as they end, not in order.

    At most `ahead` are under way, however long the input; who stops early cancels the rest.
    """
    running: dict[Future[R], T] = {}
    try:
        for item in items:
            if len(running) >= ahead:
                yield from _ended(running)
            running[submit(item)] = item
        while running:
            yield from _ended(running)
    finally:
        for future in running:
            future.cancel()


def _ended(running: dict[Future[R], T]) -> Iterator[tuple[T, R]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    for future in done:
        yield running.pop(future), future.result()
