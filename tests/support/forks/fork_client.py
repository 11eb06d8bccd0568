"""Talks to a fork server: begins jobs, kills them, reads their reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from forked_child import Report
from import_path import import_path

SERVER = Path(__file__).with_name("fork_server.py")


class ForkServer:
    """One server process, which starts with the first job; one job at a time.

    A report has `code`, `error`, `points` (the steps on the file system; None if it was killed),
    `seconds` as seen from here, and what the job adds.
    """

    def __init__(self, **environment: str) -> None:
        self._environment = {"PYTHONPATH": import_path(), **environment}
        self._process: subprocess.Popen[str] | None = None
        self._began = 0.0
        self.pid = 0  # of the newest job, of its first rank

    def start(self, job: str, **order: Any) -> int:
        """Begin a job; its process id, that of the first rank."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps({"job": job, **order}, default=os.fspath) + "\n")
        process.stdin.flush()
        self.pid = int(self._answer()["pids"][0])
        self._began = time.monotonic()
        return self.pid

    def wait(self) -> Report:
        """The report of the job, when it has ended."""
        (report,) = self.wait_for_ranks()
        return report

    def wait_for_ranks(self) -> list[Report]:
        """The report of each rank of the job, when all have ended."""
        reports: list[Report] = self._answer()["reports"]
        took = time.monotonic() - self._began
        return [report | {"seconds": took} for report in reports]

    def run(self, job: str, **order: Any) -> Report:
        self.start(job, **order)
        return self.wait()

    def kill_after(self, seconds: float, job: str, **order: Any) -> Report:
        """Begin a job and kill it after some time, if it lasts that long."""
        self.start(job, **order)
        time.sleep(seconds)
        self.send(signal.SIGKILL)
        return self.wait()

    def run_ranks(self, job: str, *, world: int = 2, **order: Any) -> list[Report]:
        """What each rank of a group came to."""
        self.start(job, world=world, **order)
        return self.wait_for_ranks()

    def finish_ranks(self, job: str, *, world: int = 2, **order: Any) -> list[Report]:
        """A group that must end well."""
        ranks = self.run_ranks(job, world=world, **order)
        assert [rank["code"] for rank in ranks] == [0] * world, [rank["error"] for rank in ranks]
        return ranks

    def send(self, number: int) -> None:
        # The server reaps a child when it begins the next one: the id is still the child's.
        os.kill(self.pid, number)

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate(timeout=60)  # end of its input

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | self._environment,
            )
        return self._process

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the fork server ended"
        found: dict[str, Any] = json.loads(line)
        return found
