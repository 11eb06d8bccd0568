"""Pools: results in order, few blocks read ahead, and an interrupt that leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from process_groups import group_ends

from bertsmith.errors import HardwareError
from bertsmith.files.pool import AHEAD, Inline, Pool, Processes

CHILD = """
import os, signal, sys, time
from dataclasses import dataclass
from itertools import count

from bertsmith.files.pool import Processes

if __name__ == "__mp_main__":  # a worker: it imports until Ctrl-C was pressed
    print("importing", flush=True)
    while signal.SIGINT not in signal.sigpending():
        time.sleep(0.01)

@dataclass(frozen=True)
class Wait:
    def open(self):
        return str

if __name__ == "__main__":
    try:
        for found in Processes(1).map_ordered(Wait(), count()):
            pass
    except KeyboardInterrupt:
        sys.exit(130)
"""


@dataclass(frozen=True)
class Double:
    """Twice a number, and the process that says so; `fault` ends the process instead."""

    fault: int = -1

    def open(self) -> Callable[[int], tuple[int, int]]:
        return self._answer

    def _answer(self, block: int) -> tuple[int, int]:
        if block == self.fault:
            os._exit(3)
        return 2 * block, os.getpid()


@pytest.mark.parametrize("pool", [Inline(), Processes(2)])
def test_results_come_in_the_order_of_the_blocks(pool: Pool) -> None:
    found = list(pool.map_ordered(Double(), range(40)))
    assert [value for value, _ in found] == list(range(0, 80, 2))
    assert (os.getpid() in {process for _, process in found}) == isinstance(pool, Inline)


def test_a_single_block_starts_no_process_and_none_gives_nothing() -> None:
    assert list(Processes(2).map_ordered(Double(), [4])) == [(8, os.getpid())]
    assert list(Processes(2).map_ordered(Double(), [])) == []


def test_few_blocks_are_read_ahead_of_the_results() -> None:
    read: list[int] = []

    def blocks() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    results = Processes(2).map_ordered(Double(), blocks())
    for done in range(1, 6):
        next(results)
        assert len(read) <= done + 2 + AHEAD
    results.close()
    assert len(read) < 20


def test_a_worker_that_ends_is_named_with_the_way_out() -> None:
    with pytest.raises(HardwareError, match="fewer --workers"):
        list(Processes(2).map_ordered(Double(fault=3), range(10)))


def test_an_interrupt_ends_every_process_without_a_traceback(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    child = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "importing\n"  # a worker that has not begun its work
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, "")
    assert group_ends(child.pid)
