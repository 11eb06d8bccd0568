"""Blocks to worker processes and their results back, in order, with a bounded number on the way."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from bertsmith.corpus.reading import CorpusBlock
from bertsmith.corpus.worker import (
    BlockEncoder,
    EncodedBlock,
    EncodeSettings,
    run_worker,
    start_worker,
)
from bertsmith.errors import HardwareError

AHEAD = 2  # blocks that wait for a worker


def encoded_pieces(
    pieces: Iterator[CorpusBlock], settings: EncodeSettings, workers: int
) -> Generator[tuple[CorpusBlock, EncodedBlock], None, None]:
    """Each piece with its tokens, in the order of the input, whatever the number of workers."""
    first = list(itertools.islice(pieces, 2))
    if len(first) < 2:  # not worth a process
        encoder = BlockEncoder(settings)
        for piece in first:
            yield piece, encoder.encode(piece.block)
        return
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=start_worker,
        initargs=(settings,),
    )
    try:
        yield from _in_order(pool, itertools.chain(first, pieces), workers + AHEAD)
    except BrokenProcessPool as error:
        raise HardwareError(
            "a worker process ended unexpectedly, perhaps for lack of memory: run the same command "
            "again with fewer --workers, it resumes where it was (a script of your own must call "
            "this under `if __name__ == '__main__':`)"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _in_order(
    pool: ProcessPoolExecutor, pieces: Iterator[CorpusBlock], most: int
) -> Iterator[tuple[CorpusBlock, EncodedBlock]]:
    waiting: deque[tuple[CorpusBlock, Future[EncodedBlock]]] = deque()
    for piece in pieces:
        waiting.append((piece, pool.submit(run_worker, piece.block)))
        if len(waiting) >= most:
            done, result = waiting.popleft()
            yield done, result.result()
    while waiting:
        done, result = waiting.popleft()
        yield done, result.result()
