"""A build in a process of its own, which can be made to die at a chosen step of its writing.

    python corpus_child.py TEXTS OUT [--workers N] [--die-at K] [--block BYTES]

With --die-at the process kills itself at its K-th step on the disk (fsync, rename, truncate); it
then encodes without a pool, so that only those steps count.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
from concurrent.futures import Future
from pathlib import Path

import corpus_making

from bertsmith.corpus import build
from bertsmith.files import pool, resumable_file, streams


class HerePool:
    """Stands in for the pool: runs every task at once in this process."""

    def __init__(self, workers, mp_context, initializer, initargs) -> None:
        self._work = initargs[0].open()

    def submit(self, task, block) -> Future:
        done: Future = Future()
        done.set_result(self._work(block))
        return done

    def shutdown(self, wait, cancel_futures) -> None:
        """Nothing runs any more."""


def die_at(step: int) -> None:
    """Kill this process before its `step`-th call that changes the disk."""
    left = [step]

    def counted(call):
        def wrapped(*given, **named):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*given, **named)

        return wrapped

    for name in ("fsync", "rename", "replace", "link", "truncate", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--block", type=int, default=2000)
    options = parser.parse_args()
    resumable_file.SECONDS_BETWEEN_SAVES = 0.0
    streams.CHUNK = min(options.block, streams.CHUNK)  # small files make many blocks, too
    if options.die_at:
        pool.ProcessPoolExecutor = HerePool
        die_at(options.die_at)
    report = build.build_corpus(
        [options.texts],
        corpus_making.bert(),
        options.out,
        build.CorpusSettings(segmenter="character"),
        workers=options.workers,
        block_bytes=options.block,
    )
    print(report.tokens, report.resumed_blocks, most_memory())


def most_memory() -> int:
    """MB at the peak. Linux's rusage would count the process that started this one, too."""
    status = Path("/proc/self/status")
    if status.exists() and (line := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(line[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
