"""The toy run: folder, pause, umask, file_limit, heavy (further numbers of its weights)."""

from __future__ import annotations

import os
import resource
import tempfile
from pathlib import Path
from typing import Any

import torch
from disk_points import Points
from toy_training import ToyModel, toy_run, train_heeding_signals

from bertsmith.training.loop.loop import train


def prepare() -> None:
    """Load what torch loads late."""
    with tempfile.TemporaryDirectory() as folder:
        train(toy_run(Path(folder), steps=4))


def run(order: dict[str, Any], points: Points) -> dict[str, Any]:
    os.umask(order.get("umask", 0o022))
    toy = toy_run(Path(order["folder"]), pause=order.get("pause", 0.0))
    if order.get("file_limit"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_limit"], order["file_limit"]))
    if order.get("heavy"):
        toy.model.extra = torch.nn.Parameter(torch.ones(order["heavy"]))
    assert isinstance(toy.model, ToyModel)
    points.install()
    return {"code": train_heeding_signals(toy).exit_code}
