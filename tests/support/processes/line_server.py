"""A process that answers lines of JSON with lines of JSON, so that imports are paid for once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from import_path import import_path

FORKS = Path(__file__).parents[1] / "forks"


class LineServer:
    """One server process of the folder forks/; one question at a time."""

    def __init__(self, name: str, **environment: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            [sys.executable, str(FORKS / name)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": import_path()} | environment,
        )

    def ask(self, **question: Any) -> dict[str, Any]:
        """Send a line; the next answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next line that the server says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self._name} ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()
