"""A process that has imported torch once and forks a group of ranks for each line it reads.

A line is an order of `rank_toy` with `world`, or one whose `program` holds arguments of
`rank_program`, or whose `command` holds a command line of bertsmith.
The answer, when all ranks have ended, is {"ranks": [{"code": ..., "error": ..., ...}, ...]}.
"""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import rank_program
import torch
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
        port = _free_port()
        children = [_forked(order, rank, port) for rank in range(order["world"])]
        _say({"ranks": _reports(children)})


def _forked(order: dict[str, Any], rank: int, port: int) -> tuple[int, int]:
    """A child process and where its report can be read."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(told)
        _child(order, rank, port, tell)
    os.close(tell)
    return pid, told


def _child(order: dict[str, Any], rank: int, port: int, tell: int) -> None:
    report: dict[str, Any] = {"code": 70, "error": ""}
    say, began = os.write, time.monotonic()
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("bertsmith").addHandler(handler)
    logging.getLogger("bertsmith").setLevel(logging.INFO)
    if order["world"] > 1 or order.get("launched"):
        os.environ |= {
            "TORCHELASTIC_RUN_ID": "toy",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(order["world"]),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo",
        }
    try:
        kinds = {"program": run_program, "command": run_command}
        report |= next((run for name, run in kinds.items() if name in order), run_rank)(order)
    except BertsmithError as fault:
        report |= {"code": fault.exit_code, "error": f"{type(fault).__name__}: {fault}"}
    except BaseException as fault:
        report["error"] = f"{type(fault).__name__}: {fault!r}"
    finally:
        report |= {"seconds": time.monotonic() - began, "log": lines}
        say(tell, json.dumps(report).encode())
        os._exit(report["code"])


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


def _reports(children: list[tuple[int, int]]) -> list[dict[str, Any]]:
    found = []
    for pid, told in children:
        with os.fdopen(told, "rb") as stream:
            report = stream.read()
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        found.append({**(json.loads(report) if report else {"error": "", "log": []}), "code": code})
    return found


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
