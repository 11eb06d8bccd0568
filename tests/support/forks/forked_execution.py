"""The execution of a training whose process is one of several forked ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from disk_points import Points

import bertsmith.training.execution.fully_sharded  # noqa: F401 - imported here once for all
from bertsmith.nn.block import Block
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import RankSettings, join


def as_rank(order: dict[str, Any], points: Points, work: Callable[[Execution], None]) -> None:
    """Join the others as `order["sharding"]` says, and work with the points installed."""
    settings = RankSettings(sharding=order.get("sharding", "ddp"))
    ranks = join(settings, device=torch.device("cpu"), sharded=(Block,))
    execution = Execution(ranks=ranks)
    points.install()
    work(execution)
    execution.close()
