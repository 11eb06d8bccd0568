"""Starts toy runs in a forked process and kills them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ended:
    code: int
    seconds: float
    points: int | None
    error: str


class ToyServer:
    """Talks to one server process; one run at a time."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("toy_server.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._began = 0.0
        self.pid = 0

    def start(self, folder: Path, **job: Any) -> int:
        """Begin a run; its process id."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"folder": str(folder), **job}) + "\n")
        self._process.stdin.flush()
        self.pid = int(self._answer()["pid"])
        self._began = time.monotonic()
        return self.pid

    def wait(self) -> Ended:
        answer = self._answer()
        took = time.monotonic() - self._began
        return Ended(answer["code"], took, answer["points"], answer["error"])

    def run(self, folder: Path, **job: Any) -> Ended:
        self.start(folder, **job)
        return self.wait()

    def kill_after(self, folder: Path, seconds: float, **job: Any) -> Ended:
        """Begin a run and kill it after some time, if it lasts that long."""
        self.start(folder, **job)
        time.sleep(seconds)
        self.send(signal.SIGKILL)
        return self.wait()

    def send(self, number: int) -> None:
        # The server reaps a child when it begins the next one: the id is still the child's.
        os.kill(self.pid, number)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server of toy runs ended"
        answer: dict[str, Any] = json.loads(line)
        return answer
