"""Children of a server process that has imported everything once: a fork per job, a report each."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from disk_points import Points

from bertsmith.errors import BertsmithError

Report = dict[str, Any]


@dataclass(frozen=True)
class Child:
    """A forked process, and where its report can be read."""

    pid: int
    pipe: int

    def report(self, code: int | None = None) -> Report:
        """What it wrote (nothing if it was killed), and its exit code, waited for if not given."""
        with os.fdopen(self.pipe, "rb") as stream:
            written = stream.read()
        if code is None:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return {"error": "", **(json.loads(written) if written else {}), "code": code}


def forked(work: Callable[[Report], None]) -> Child:
    """A child that runs `work`, which writes into its report: {"code": ..., "error": ...}."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return Child(pid, reading)
    os.close(reading)
    write = os.write  # as it is now: `work` may count the calls of its own
    report: Report = {"code": 70, "error": ""}
    try:
        work(report)
    except BertsmithError as fault:
        report |= {"code": fault.exit_code, "error": f"{type(fault).__name__}: {fault}"}
    except BaseException as fault:
        report["error"] = f"{type(fault).__name__}: {fault!r}"
    finally:
        write(writing, json.dumps(report).encode())
        os._exit(report["code"])


def answer(content: dict[str, Any]) -> None:
    """A line of the server."""
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


def serve_killable(run: Callable[[dict[str, Any], Points], int]) -> None:
    """Fork `run` for each line: the answers are {"pid": ...} at once, and its report at the end.

    `run` gets the job and the points at which it is killed or fails, to be installed by it, and
    gives the exit code.
    """
    child: Child | None = None
    for line in sys.stdin:
        if child is not None:
            os.waitpid(child.pid, 0)  # only now: until here a late signal cannot hit a stranger
        child = forked(partial(_counted, run, json.loads(line)))
        answer({"pid": child.pid})
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        answer({"points": None, **child.report(code)})


def _counted(
    run: Callable[[dict[str, Any], Points], int], job: dict[str, Any], report: Report
) -> None:
    points = Points(job.get("kill_at", 0), job.get("fail_at", 0), job.get("fail_with", 0))
    try:
        report["code"] = run(job, points)
    finally:
        report["points"] = points.count


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def become_rank(rank: int, world: int, port: int) -> None:
    """The environment of a process that torchrun started."""
    os.environ |= {
        "TORCHELASTIC_RUN_ID": "toy",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }
