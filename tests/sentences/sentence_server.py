"""A process that has imported torch once and forks sentence trainings for each line it reads.

A line is JSON: model, jobs ([folder, objective, data, sections] each), world, sharding, and `kill`,
seconds after which the children are killed. The answer is {"codes": [...], "errors": [...]}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from forked_jobs import Report, answer, become_rank, forked, free_port
from tiny_sentences import tiny_job

import bertsmith.training.execution.fully_sharded  # noqa: F401 - imported here once for all
from bertsmith.nn.block import Block
from bertsmith.sentences.train.train import train_sentences
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import RankSettings, join


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        order = json.loads(line)
        port, world = free_port(), order.get("world", 1)
        children = [forked(partial(_train, order, rank, world, port)) for rank in range(world)]
        if order.get("kill") is not None:
            time.sleep(order["kill"])
            for child in children:
                os.kill(child.pid, signal.SIGKILL)
        reports = [child.report() for child in children]
        answer({f"{name}s": [one[name] for one in reports] for name in ("code", "error")})


def _train(order: dict[str, Any], rank: int, world: int, port: int, report: Report) -> None:
    if world > 1:
        become_rank(rank, world, port)
    settings = RankSettings(sharding=order.get("sharding", "ddp"))
    ranks = join(settings, device=torch.device("cpu"), sharded=(Block,))
    execution = Execution(ranks=ranks)
    for folder, objective, data, sections in order["jobs"]:
        job = tiny_job(order["model"], objective, data, sections=sections, out=Path(folder))
        train_sentences(job, execution=execution)
    execution.close()
    report["code"] = 0


if __name__ == "__main__":
    main()
