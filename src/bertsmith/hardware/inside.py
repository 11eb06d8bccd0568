"""What a child process does first: no core file, no life beyond its parent, a clean stdout."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_LATE = 15.0  # the parent kills at the limit; this is for the case that there is no parent


def take_stdout() -> int:
    """Keeps standard output for the answer; whatever libraries print goes to stderr instead."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def guard(limit: float) -> None:
    """Leaves no core file and no orphan: ends with its parent, and in any case after the limit."""
    if os.name != "posix":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_REAL, limit + _LATE)  # SIGALRM ends a process by default
    if sys.platform == "linux":
        parent = os.getppid()
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL.value, 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            os.kill(os.getpid(), signal.SIGKILL)
