"""The process that has imported torch once and forks a job for each line that it reads.

A line is JSON: `job`, a name of the table; `world`, as how many ranks it runs (1); `kill_at` and
`fail_at`, the file-system step at which the child is killed or fails (see disk_points); and what
the job itself reads. There are two answers: {"pids": ...} at once, and when all have ended
{"reports": [{"code": ..., "error": ..., "points": ..., ...}, ...]}, one of each rank.

A job is a module of jobs/ with `run(order, points)`, which gives what it adds to the report.
It may have `prepare()`: what is made once, before the first fork of that job, for all children.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from functools import partial
from types import ModuleType
from typing import IO, Any

import torch
from disk_points import Points
from forked_child import Child, Report, become_rank, forked, free_port

JOBS = {
    "command": "command_job",  # a command line, killed at any step
    "fuzz": "fuzz_job",  # a command line in odd surroundings
    "index": "index_job",  # `index build`
    "neural": "neural_job",  # a language model from before BERT
    "rank command": "rank_command_job",  # a command line as several ranks
    "rank program": "rank_program",  # ranks by hand, without the loop
    "rank toy": "rank_toy_job",  # the toy run with faults of ranks
    "road": "road_job",  # the study of language models
    "sentences": "sentence_job",
    "toy": "toy_job",  # the toy run
    "write": "write_job",
}


def main() -> None:
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a child prints is no answer
    ready: dict[str, ModuleType] = {}
    ended: list[Child] = []
    for line in sys.stdin:
        for child in ended:
            child.reap()  # only now: until here a late signal cannot hit a stranger
        order = json.loads(line)
        name = order["job"]
        if name not in ready:
            ready[name] = importlib.import_module(JOBS[name])
            getattr(ready[name], "prepare", lambda: None)()
        ended = _serve(ready[name], order, answers)


def _serve(job: ModuleType, order: dict[str, Any], answers: IO[str]) -> list[Child]:
    world, port = order.get("world", 1), free_port()
    children = [forked(partial(_work, job, order, rank, port)) for rank in range(world)]
    _answer(answers, {"pids": [child.pid for child in children]})
    _answer(answers, {"reports": [child.report() for child in children]})
    return children


def _work(job: ModuleType, order: dict[str, Any], rank: int, port: int, report: Report) -> None:
    world = order.get("world", 1)
    if world > 1 or order.get("launched"):
        become_rank(rank, world, port)
    points = Points.of(order, rank)
    try:
        report |= {"code": 0, **(job.run(order, points) or {})}
    finally:
        report["points"] = points.count


def _answer(answers: IO[str], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
