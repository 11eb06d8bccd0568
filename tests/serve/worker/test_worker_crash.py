"""A worker that fails in an unforeseen way says where, without a traceback or a text."""

from __future__ import annotations

import socket
import subprocess
import sys

import orjson

from bertsmith.serve.frames import FrameKind, WireFrame


def test_a_crash_prints_one_line_without_its_message() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        worker = subprocess.Popen(
            [sys.executable, "-m", "bertsmith.serve.worker.main", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
        # A folder that is no text: an error that nobody foresaw, with the value in its message.
        settings = {"folder": {"secret": 1}, "precision": "fp32", "threads": 1, "index": None}
        ours.sendall(WireFrame(FrameKind.CALL, 0, orjson.dumps(settings)).to_bytes())
        _, printed = worker.communicate(timeout=120)
    assert worker.returncode == 70
    assert printed.startswith("a worker failed with TypeError in ")
    assert len(printed.splitlines()) == 1
    assert "secret" not in printed
