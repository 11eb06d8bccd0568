"""A fork that runs a job and reports in JSON how it ended."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bertsmith.errors import BertsmithError

Report = dict[str, Any]


@dataclass(frozen=True)
class Child:
    """A forked process, and where its report can be read."""

    pid: int
    pipe: int

    def report(self) -> Report:
        """What it wrote (nothing if it was killed), and its exit code, when it has ended.

        It is not reaped: the id stays its own, for signals that come late.
        """
        with os.fdopen(self.pipe, "rb") as stream:
            written = stream.read()
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return {
            "error": "",
            "points": None,
            **(json.loads(written) if written else {}),
            "code": code,
        }

    def reap(self) -> None:
        os.waitpid(self.pid, 0)


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
