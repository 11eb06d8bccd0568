"""Making batches in a thread must not start OpenMP workers beside those of training."""

from __future__ import annotations

import sys

import pytest
from fresh_python import run_fresh

PROGRAM = '''
import os, threading
import numpy as np
import torch
from bertsmith.nn.layout import Layout

def workers():
    return len(os.listdir("/proc/self/task"))

def started_by(work):
    """Workers beside the thread itself, counted in it: they go when it ends, sooner or later."""
    found = []

    def run():
        before = workers()
        work()
        found.append(workers() - before)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]

torch.set_num_threads(2)
torch.randn(512, 512) @ torch.randn(512, 512)
print(started_by(lambda: Layout.of([5, 3, 9] * 40)))
print(started_by(lambda: torch.ones(60, dtype=torch.long).repeat_interleave(torch.arange(60))))
'''


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_layout_starts_no_workers() -> None:
    made, known = run_fresh(PROGRAM).split()
    assert int(made) == 0
    assert int(known) > 0  # what it looks like when an operation does
