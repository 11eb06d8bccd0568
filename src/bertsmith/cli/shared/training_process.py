"""The process of a training command: threads, memory, further processes, signals."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertsmith.training.execution.execution import RunSettings
    from bertsmith.training.execution.stop import StopSignals


@contextmanager
def training_process(run: RunSettings) -> Iterator[StopSignals]:
    """Set the process up; gives stop requests by signal.

    With several devices this process becomes the launcher of the others and does not come back.
    """
    import torch

    from bertsmith.hardware.environment import thread_count
    from bertsmith.training.execution.execution import is_one_of_many, keep_freed_memory
    from bertsmith.training.execution.launch import relaunch
    from bertsmith.training.execution.stop import StopSignals

    torch.set_num_threads(run.threads or thread_count())
    keep_freed_memory()
    if run.devices > 1 and not is_one_of_many():
        relaunch(["-m", "bertsmith", *sys.argv[1:]], devices=run.devices)
    with StopSignals() as stop:
        yield stop
