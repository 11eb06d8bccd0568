"""A process that has imported torch once and forks a toy run for each line it reads.

A line is JSON: folder, pause, umask, file_limit, kill_at (the number of the file-system step at
which the child kills itself), fail_at (the number at which that step fails with `fail_with`).
The answers are {"pid": ...} at once and {"code": ..., "points": ..., "error": ...} at the end.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))

import torch
from toy_training import ToyModel, toy_run, train_heeding_signals

from bertsmith.errors import BertsmithError
from bertsmith.training.loop.loop import train

# Every call by which a run changes what is on the disk; `os.fdopen` stands for the writes to it.
HOOKED = ("open", "fsync", "rename", "replace", "mkdir", "rmdir", "unlink", "ftruncate", "write")


class Points:
    """Counts file-system steps; kills the process, or fails, at a chosen one."""

    def __init__(self, kill_at: int, fail_at: int, fail_with: int) -> None:
        self.count = 0
        self._kill_at = kill_at
        self._fail_at = fail_at
        self._fail_with = fail_with

    def install(self) -> None:
        for name in HOOKED:
            setattr(os, name, self._counted(name, getattr(os, name)))
        plain = os.fdopen

        def fdopen(descriptor: int, *mode: Any) -> Any:
            stream = plain(descriptor, *mode)
            return _Torn(stream, self) if mode and "w" in mode[0] else stream

        os.fdopen = fdopen

    def reached(self, what: str) -> None:
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.count == self._fail_at:
            raise OSError(self._fail_with, os.strerror(self._fail_with), what)

    def _counted(self, name: str, call: Any) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            changes = name != "open" or (len(given) > 1 and given[1] & (os.O_CREAT | os.O_WRONLY))
            if changes:
                self.reached(name)
            return call(*given, **named)

        return counted


class _Torn:
    """A stream whose every write is two steps, with half of the bytes on the disk between them."""

    def __init__(self, stream: Any, points: Points) -> None:
        self._stream = stream
        self._points = points

    def write(self, block: Any) -> None:
        half = len(block) // 2
        self._points.reached("write")
        self._stream.write(block[:half])
        self._stream.flush()
        self._points.reached("write")
        self._stream.write(block[half:])

    def __enter__(self) -> _Torn:
        return self

    def __exit__(self, *given: Any) -> None:
        self._stream.__exit__(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        train(toy_run(Path(folder), steps=4))  # loads what torch loads late, once for all children
    child = 0
    for line in sys.stdin:
        if child:
            os.waitpid(child, 0)  # only now: until here a late signal cannot hit a stranger
        job = json.loads(line)
        told, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(told)
            _child(job, tell)
        os.close(tell)
        _say({"pid": child})
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        with os.fdopen(told, "rb") as stream:
            report = stream.read()
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        _say({"code": code, **(json.loads(report) if report else {"points": None, "error": ""})})


def _child(job: dict[str, Any], tell: int) -> None:
    code, error = 70, ""
    points = Points(job.get("kill_at", 0), job.get("fail_at", 0), job.get("fail_with", 0))
    say = os.write
    try:
        os.umask(job.get("umask", 0o022))
        run = toy_run(Path(job["folder"]), pause=job.get("pause", 0.0))
        if job.get("file_limit"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_limit"], job["file_limit"]))
        if job.get("heavy"):
            run.model.extra = torch.nn.Parameter(torch.ones(job["heavy"]))
        assert isinstance(run.model, ToyModel)
        points.install()
        code = train_heeding_signals(run).exit_code
    except BertsmithError as fault:
        code, error = fault.exit_code, f"{type(fault).__name__}: {fault}"
    except BaseException as fault:
        error = f"{type(fault).__name__}: {fault!r}"
    finally:
        say(tell, json.dumps({"points": points.count, "error": error}).encode())
        os._exit(code)


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
