"""Making batches in a thread must not start OpenMP workers beside those of training."""

from __future__ import annotations

import sys

import pytest
from fresh_python import run_fresh

PROGRAM = """
import os, threading
import torch
from bertsmith.nn.layout import Layout

def workers():
    return len(os.listdir("/proc/self/task"))

def run():
    before = workers()
    {work}
    print(workers() - before)  # here: workers go when their thread ends, sooner or later

torch.set_num_threads(2)
torch.randn(512, 512) @ torch.randn(512, 512)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_layout_starts_no_workers() -> None:
    made = run_fresh(PROGRAM.format(work="Layout.of([5, 3, 9] * 40)"))
    assert int(made) == 0
    # What it looks like when an operation does.
    repeated = "torch.ones(60, dtype=torch.long).repeat_interleave(torch.arange(60))"
    assert int(run_fresh(PROGRAM.format(work=repeated))) > 0
