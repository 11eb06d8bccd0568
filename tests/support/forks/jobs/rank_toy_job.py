"""An order of `rank_toy`, and what the package logged meanwhile."""

from __future__ import annotations

import logging
from typing import Any

from disk_points import Points
from rank_toy import run_rank
from toy_job import prepare  # noqa: F401 - called by the server

import bertsmith.training.checkpoints.sharded
import bertsmith.training.execution.fully_sharded  # noqa: F401 - imported here once for all


def run(order: dict[str, Any], points: Points) -> dict[str, Any]:
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("bertsmith").addHandler(handler)
    logging.getLogger("bertsmith").setLevel(logging.INFO)
    return run_rank(order, points) | {"log": lines}
