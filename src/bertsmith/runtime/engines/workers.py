"""Long-lived threads that run batches: a bounded queue, futures, cancellation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from bertsmith.errors import HardwareError

T = TypeVar("T")
R = TypeVar("R")


class Workers:
    """Threads that start with the first work and end with `close`, this object or the process.

    At most `4 * threads` pieces of work are accepted at a time; `submit` waits for room.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._process = os.getpid()
        self._closed = False
        self._pool: ThreadPoolExecutor | None = None
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(4 * threads)

    @property
    def turn(self) -> threading.Lock:
        """Held by an engine that runs one batch at a time."""
        self.check_process()
        return self._turn

    def check_process(self) -> None:
        """Refuse work in a process that was forked from the one of this object."""
        global _worked_in
        _check(self._process)
        _worked_in = self._process

    def submit(self, work: Callable[[], R]) -> Future[R]:
        """Have a worker call `work`; a future that is cancelled before its turn never runs."""
        self.check_process()
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
        if os.getpid() != self._process:  # threads and locks are those of another process
            return
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


_worked_in: int | None = (
    None  # the process that a model has run in: this one, or one it forked from
)


def check_fork() -> None:
    """Raise in a process that was forked from one in which a model has run.

    Torch would wait there forever for threads that did not survive the fork.
    """
    _check(_worked_in)


def _check(worked_in: int | None) -> None:
    if worked_in not in (None, os.getpid()):
        raise HardwareError(
            f"this process was forked from process {worked_in}, in which a model has run: the "
            "threads of torch do not survive a fork, and it would hang. Start processes with "
            "multiprocessing.get_context('spawn') and load the model in each, or fork before the "
            "first use of a model"
        )


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
