"""Starts toy runs in a forked process and kills them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from line_server import LineServer


@dataclass(frozen=True)
class Ended:
    code: int
    seconds: float
    points: int | None
    error: str


class ToyServer:
    """Talks to one server process; one run at a time."""

    def __init__(self) -> None:
        self._server = LineServer("toy_server.py")
        self._began = 0.0
        self.pid = 0
        self.close = self._server.close

    def start(self, folder: Path, **job: Any) -> int:
        """Begin a run; its process id."""
        self.pid = int(self._server.ask(folder=str(folder), **job)["pid"])
        self._began = time.monotonic()
        return self.pid

    def wait(self) -> Ended:
        answer = self._server.answer()
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
