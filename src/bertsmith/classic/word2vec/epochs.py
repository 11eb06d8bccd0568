"""One epoch: threads take chunks of text in turn; Ctrl-C ends them in a fraction of a second."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from itertools import count

from bertsmith.classic.word2vec.engines import WordEngine
from bertsmith.classic.word2vec.tables import Tables, chunk_seed
from bertsmith.errors import DivergedError

_LOOK = 0.2  # seconds between two looks at the threads


def run_epoch(
    engine: WordEngine,
    tables: Tables,
    *,
    seed: int,
    epoch: int,
    threads: int,
    look: Callable[[], None] = lambda: None,
) -> tuple[float, float]:
    """The sum of the losses and the number of predictions of one epoch, in float64.

    The random numbers of a chunk come from seed, epoch and chunk, so that one thread repeats a run
    bit for bit. Several threads write to the same weights without locks (Hogwild, Recht et al.
    2011), so that two runs differ. `look` is called a few times per second.
    """
    chunks = tables.chunks
    numbers = count()  # next() is atomic
    results: list[tuple[float, float]] = []
    faults: list[BaseException] = []
    stop = threading.Event()

    def work() -> None:
        try:
            while not stop.is_set() and (number := next(numbers)) < len(chunks) - 1:
                own = chunk_seed(seed, epoch, number)
                found = engine.run(int(chunks[number]), int(chunks[number + 1]), own)
                results.append(found)
        except BaseException as fault:
            faults.append(fault)
            stop.set()

    workers = [threading.Thread(target=work, daemon=True) for _ in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(_LOOK)
                look()
    finally:
        stop.set()
        for worker in workers:
            if worker.ident is not None:
                worker.join()
    if faults:
        raise faults[0]
    loss = math.fsum(one for one, _ in results)
    if not math.isfinite(loss):
        raise DivergedError(
            f"the loss of epoch {epoch + 1} is not finite; the epochs before it are safe: train "
            "with a lower rate"
        )
    return loss, math.fsum(pairs for _, pairs in results)
