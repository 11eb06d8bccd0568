"""A running service and its clients, for the benchmarks of faults."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "all-MiniLM-L6-v2"
CORES = len(os.sched_getaffinity(0))
READY = re.compile(r"ready on (http://\S+)")
SHORT = "a short text"


@dataclass
class Side:
    """A running service."""

    url: str
    process: subprocess.Popen[str]


def resident(side: Side) -> float:
    """Megabytes of the front in memory."""
    pages = int(Path(f"/proc/{side.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_of(pid: int) -> float:
    """Seconds of CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu(side: Side) -> float:
    """Seconds of CPU time of the front."""
    return cpu_of(side.process.pid)


def ours() -> list[str]:
    command = [sys.executable, "-m", "bertsmith", "serve", f"m={MODEL}", "--port", "0"]
    return [*command, "--precision", "fp32", "--threads", str(CORES)]


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[Side]:
    """A service from its command until the end of the block."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    url, lines = "", []
    for line in process.stderr:
        lines.append(line)
        if found := READY.search(line):
            url = found[1]
            break
    if not url:
        sys.exit(f"{command} did not start:\n{''.join(lines)[-2000:]}")
    threading.Thread(target=process.stderr.read, daemon=True).start()  # the pipe must not fill
    try:
        yield Side(url, process)
    finally:
        process.terminate()
        process.wait(60)


class Asker:
    """One client with a connection of its own."""

    def __init__(self, url: str, key: str | None = None) -> None:
        self._host = url.removeprefix("http://")
        self._connection = http.client.HTTPConnection(self._host, timeout=90)
        self._headers = {"content-type": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"

    def ask(self, inputs: str | list[str], path: str = "/embed") -> tuple[int, Any, float]:
        """Status, answer and seconds."""
        start = time.perf_counter()
        body = json.dumps({"inputs": inputs})
        try:
            self._connection.request("POST", path, body, self._headers)
            answer = self._connection.getresponse()
            status, content = answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, None, time.perf_counter() - start
        return status, json.loads(content), time.perf_counter() - start

    def info(self) -> dict[str, Any]:
        """The model and its limits."""
        self._connection.request("GET", "/info", headers=self._headers)
        found: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return found


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def times_during(asker: Asker, seconds: float) -> list[float]:
    """How long requests of one short text take, one after another."""
    end = time.perf_counter() + seconds
    found = []
    while time.perf_counter() < end:
        found.append(asker.ask(SHORT)[2])
    return found
