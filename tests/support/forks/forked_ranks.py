"""Trainings of a server process that has imported torch once: a fork per rank of each job."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from disk_points import Points
from forked_jobs import Report, answer, become_rank, forked, free_port

import bertsmith.training.execution.fully_sharded  # noqa: F401 - imported here once for all
from bertsmith.nn.block import Block
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import RankSettings, join

Run = Callable[[dict[str, Any], Execution], None]


def serve_ranks(run: Run) -> None:
    """Fork `run` for each line; the answers are {"codes": ..., "errors": ..., "points": ...}.

    A line is JSON: what `run` needs, and `world`, `sharding`, `kill` (the file-system step at which
    a child kills itself; points are how many it made).
    """
    torch.set_num_threads(1)
    for line in sys.stdin:
        order = json.loads(line)
        port, world = free_port(), order.get("world", 1)
        children = [forked(partial(_train, run, order, rank, port)) for rank in range(world)]
        reports = [{"point": None, **child.report()} for child in children]
        answer({f"{key}s": [one[key] for one in reports] for key in ("code", "error", "point")})


def _train(run: Run, order: dict[str, Any], rank: int, port: int, report: Report) -> None:
    world = order.get("world", 1)
    if world > 1:
        become_rank(rank, world, port)
    settings = RankSettings(sharding=order.get("sharding", "ddp"))
    ranks = join(settings, device=torch.device("cpu"), sharded=(Block,))
    execution = Execution(ranks=ranks)
    points = Points(order.get("kill", 0))
    points.install()
    run(order, execution)
    execution.close()
    report |= {"code": 0, "point": points.count}
