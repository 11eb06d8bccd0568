"""A process that has imported torch once and forks a toy run for each line it reads.

A line is JSON: folder, pause, umask, file_limit, kill_at (the number of the file-system step at
which the child kills itself), fail_at (the number at which that step fails with `fail_with`).
The answers are {"pid": ...} at once and {"code": ..., "points": ..., "error": ...} at the end.
"""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import torch
from disk_points import Points
from forked_jobs import serve_killable
from toy_training import ToyModel, toy_run, train_heeding_signals

from bertsmith.training.loop.loop import train


def run(job: dict[str, Any], points: Points) -> int:
    os.umask(job.get("umask", 0o022))
    toy = toy_run(Path(job["folder"]), pause=job.get("pause", 0.0))
    if job.get("file_limit"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_limit"], job["file_limit"]))
    if job.get("heavy"):
        toy.model.extra = torch.nn.Parameter(torch.ones(job["heavy"]))
    assert isinstance(toy.model, ToyModel)
    points.install()
    return train_heeding_signals(toy).exit_code


if __name__ == "__main__":
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        train(toy_run(Path(folder), steps=4))  # loads what torch loads late, once for all children
    serve_killable(run)
