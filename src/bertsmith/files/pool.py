"""Pools: one task over many blocks, results in the order of the blocks, a few blocks at work.

`Inline` works in this process, `Processes` in several of this machine.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, parent_process
from typing import Any, Protocol, TypeVar

from bertsmith.errors import HardwareError

AHEAD = 2  # blocks that wait for a worker
Block = TypeVar("Block")
Result = TypeVar("Result")
BlockT = TypeVar("BlockT", contravariant=True)
ResultT = TypeVar("ResultT", covariant=True)


class BlockTask(Protocol[BlockT, ResultT]):
    """Work on blocks; sent to a process once, which opens it and keeps what that takes."""

    def open(self) -> Callable[[BlockT], ResultT]:
        """The function of a block."""


class Pool(Protocol):
    """Where blocks are worked on."""

    def map_ordered(
        self, task: BlockTask[Block, Result], blocks: Iterable[Block]
    ) -> Generator[Result, None, None]:
        """The result of each block, in their order; few are read ahead of the results.

        Closing the generator, or an error or interrupt in it, ends all work.
        """


class Inline:
    """Works in this process, one block after another."""

    def map_ordered(
        self, task: BlockTask[Block, Result], blocks: Iterable[Block]
    ) -> Generator[Result, None, None]:
        """The result of each block, in their order."""
        yield from map(task.open(), blocks)


class Processes:
    """Works in several processes of this machine; a single block is done here."""

    def __init__(self, workers: int) -> None:
        self._workers = workers

    def map_ordered(
        self, task: BlockTask[Block, Result], blocks: Iterable[Block]
    ) -> Generator[Result, None, None]:
        """The result of each block, in their order."""
        rest = iter(blocks)
        first = list(itertools.islice(rest, 2))
        if len(first) < 2:  # not worth a process
            yield from Inline().map_ordered(task, first)
            return
        pool = ProcessPoolExecutor(
            self._workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=start_worker,
            initargs=(task,),
        )
        try:
            yield from _in_order(pool, itertools.chain(first, rest), self._workers + AHEAD)
        except BrokenProcessPool as error:
            raise HardwareError(
                "a worker process ended unexpectedly, perhaps for lack of memory: run the same "
                "command again with fewer --workers, it resumes where it was (a script of your own "
                "must call this under `if __name__ == '__main__':`)"
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, blocks: Iterator[Any], most: int) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    for block in blocks:
        with _deaf():
            waiting.append(pool.submit(run_worker, block))
        if len(waiting) >= most:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start meanwhile do not hear Ctrl-C, not even before their first line.

    It reaches every process of a terminal, and one that still imports would print a traceback.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """What this process does with a block, opened when the process starts."""

    work: Callable[[Any], Any] | None = None


def start_worker(task: BlockTask[Any, Any]) -> None:
    """Prepare a worker process: one thread, deaf to Ctrl-C, gone when its parent is."""
    # Rust reads these when it first needs a thread; the pool already uses every core.
    os.putenv("TOKENIZERS_PARALLELISM", "false")
    os.putenv("RAYON_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the work in good order
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _Worker.work = task.open()


def run_worker(block: Any) -> Any:
    """The result of one block in a worker process."""
    if _Worker.work is None:
        raise RuntimeError("the worker was not started")
    return _Worker.work(block)


def _leave_with_parent() -> None:
    """End this process when the parent is killed, so that no orphan keeps a core busy."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
