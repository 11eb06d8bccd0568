"""Runs one module in a child process: time limit, no orphans, a crash becomes a value."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bertsmith.hardware import environment

# Left out of the child's environment: they would open a prompt, flood the output, or measure
# something other than what this package runs.
_DROPPED = (
    *("PYTHONINSPECT", "PYTHONSTARTUP", "PYTHONBREAKPOINT", "PYTHONPROFILEIMPORTTIME"),
    *("PYTHONVERBOSE", "PYTHONMALLOC", "PYTHONTRACEMALLOC", "OMP_THREAD_LIMIT", "OMP_PROC_BIND"),
    *("OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "MKL_DYNAMIC", "MKL_VERBOSE"),
    *("DNNL_VERBOSE", "ONEDNN_VERBOSE"),
)
_RESULT_BYTES = 1_000_000
_STDERR_BYTES = 16_000
_GRACE = 5.0  # seconds for pipes to empty after everything that could write has been killed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended: its answer, or the signal, time-out or exit code it ended with."""

    answer: dict[str, Any] | None
    crash: str | None
    timed_out: bool
    code: int
    seconds: float
    stderr: str


def run(
    module: str,
    arguments: Sequence[str],
    *,
    limit: float,
    threads: int,
) -> Ended:
    """Runs `python -m module` and waits; never raises for anything the child does.

    The child is expected to print one JSON object as its whole standard output.
    """
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bertsmith-child-", ignore_cleanup_errors=True) as tmp:
        process = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_variables(tmp, threads),
            start_new_session=True,
        )
        stdout, stderr = _Tail(process.stdout, _RESULT_BYTES), _Tail(process.stderr, _STDERR_BYTES)
        try:
            timed_out = _wait(process, limit)
        finally:  # also on Ctrl-C: compilers and workers that the child started go with it
            _kill_group(process)
        output, errors = stdout.text(), stderr.text()
    code = process.returncode
    return Ended(
        answer=None if timed_out or code != 0 else _object(output),
        crash=None if timed_out else _crash(code),
        timed_out=timed_out,
        code=code,
        seconds=time.monotonic() - start,
        stderr=errors,
    )


def able() -> bool:
    """Whether this program can start a Python child at all (a frozen application cannot)."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class _Tail:
    """Empties a pipe in a thread and keeps its last bytes, so that a flood costs no memory."""

    def __init__(self, pipe: IO[bytes] | None, size: int) -> None:
        self._last = b""
        self._size = size
        self._thread = threading.Thread(target=self._drain, args=(pipe,), daemon=True)
        self._thread.start()

    def _drain(self, pipe: IO[bytes] | None) -> None:
        if pipe is None:
            return
        with pipe:
            while chunk := os.read(pipe.fileno(), 65536):
                self._last = (self._last + chunk)[-self._size :]

    def text(self) -> str:
        """The last bytes as text; a process that left the group delays this by seconds at most."""
        self._thread.join(_GRACE)
        return self._last.decode("utf-8", errors="replace")


def _variables(scratch: str, threads: int) -> dict[str, str]:
    variables = {
        name: value for name, value in environment.inherited().items() if name not in _DROPPED
    }
    variables |= {
        "TMPDIR": scratch,  # compiled code and other leavings go away with the child
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONUTF8": "1",
    }
    root = Path(__file__).resolve().parents[2]
    if root.name not in ("site-packages", "dist-packages"):  # run from a source tree
        variables["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(root), variables.get("PYTHONPATH", "")])
        )
    return variables


def _wait(process: subprocess.Popen[bytes], limit: float) -> bool:
    """Whether the time limit passed before the process ended."""
    try:
        process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        return True
    return False


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    # The child leads a group of its own; an empty one is no error (EPERM on macOS).
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _crash(code: int) -> str | None:
    if code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _object(output: str) -> dict[str, Any] | None:
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_PR_SET_PDEATHSIG = 1
_LATE = 15.0  # the parent kills at the limit; this is for the case that there is no parent


def take_stdout() -> int:
    """Reserves standard output for the answer; what libraries print goes to stderr instead."""
    sys.stdout.flush()
    answer_to = os.dup(1)
    os.dup2(2, 1)
    return answer_to


def guard(limit: float) -> None:
    """Leave no core file and no orphan: end with the parent, at the latest after the limit."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_REAL, limit + _LATE)  # SIGALRM ends a process by default
    if sys.platform == "linux":
        parent = os.getppid()
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL.value, 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            os.kill(os.getpid(), signal.SIGKILL)
