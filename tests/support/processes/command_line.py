"""Running the command line in this process, and in a fresh one where that matters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.cli.app import main

SOURCE = Path(__file__).parents[3] / "src"
COMMAND = [sys.executable, "-m", "bertsmith"]


def run(*arguments: str | Path) -> int:
    """The exit code of a command run in this process; output goes to capsys."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return int(end.value.code or 0)


def environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"} | more


def fresh(
    *arguments: str | Path, text: str | bytes = b"", **more: str
) -> subprocess.CompletedProcess[bytes]:
    """A command in a process of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=text.encode() if isinstance(text, str) else text,
        capture_output=True,
        env=environment(**more),
        timeout=120,
        check=False,
    )
