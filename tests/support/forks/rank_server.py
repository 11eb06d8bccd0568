"""A process that has imported torch once and forks a group of ranks for each line it reads.

A line is an order of `rank_toy` with `world`, or one whose `program` holds arguments of
`rank_program`, or whose `command` holds a command line of bertsmith.
The answer, when all ranks have ended, is {"ranks": [{"code": ..., "error": ..., ...}, ...]}.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import rank_program
import torch
from forked_jobs import Report, answer, become_rank, forked, free_port
from rank_toy import run_rank
from toy_training import toy_run

import bertsmith.training.checkpoints.sharded
import bertsmith.training.execution.fully_sharded  # noqa: F401 - imported here once for all children
from bertsmith.errors import BertsmithError
from bertsmith.training.loop.loop import train


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        train(toy_run(Path(folder), steps=4))  # loads what torch loads late, once for all children
    for line in sys.stdin:
        order = json.loads(line)
        port = free_port()
        ranks = [forked(partial(_run, order, rank, port)) for rank in range(order["world"])]
        answer({"ranks": [{"log": [], **child.report()} for child in ranks]})


def _run(order: dict[str, Any], rank: int, port: int, report: Report) -> None:
    began = time.monotonic()
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("bertsmith").addHandler(handler)
    logging.getLogger("bertsmith").setLevel(logging.INFO)
    if order["world"] > 1 or order.get("launched"):
        become_rank(rank, order["world"], port)
    kinds = {"program": run_program, "command": run_command}
    try:
        report |= next((run for name, run in kinds.items() if name in order), run_rank)(order)
    finally:
        report |= {"seconds": time.monotonic() - began, "log": lines}


def run_program(order: dict[str, Any]) -> dict[str, Any]:
    out, mode, steps, saved = order["program"]
    rank_program.main(Path(out), mode, steps, Path(saved) if saved else None)
    return {"code": 0}


def run_command(order: dict[str, Any]) -> dict[str, Any]:
    """The exit code, what was printed, and what was written, renamed or removed below `folder`."""
    changed: list[str] = []

    def audit(event: str, what: tuple[Any, ...]) -> None:
        if event in ("os.rename", "os.remove", "os.link", "shutil.rmtree"):
            changed.extend(str(path) for path in what if str(path).startswith(order["folder"]))

    sys.addaudithook(audit)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    from bertsmith.cli.app import _run

    try:
        code, error = _run(order["command"], debug=False), ""
    except BertsmithError as fault:
        code, error = fault.exit_code, f"{type(fault).__name__}: {fault}"
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    out, err = (stream.buffer.getvalue().decode() for stream in (sys.stdout, sys.stderr))
    return {"code": code, "error": error, "out": out, "err": err, "changed": changed}


if __name__ == "__main__":
    main()
