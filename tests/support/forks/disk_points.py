"""Fault injection: counts the steps by which a process changes the disk, and kills it at one."""

from __future__ import annotations

import errno
import os
import signal
from typing import Any

# Every call by which a run changes what is on the disk; `os.fdopen` stands for the writes to it.
HOOKED = (
    *("open", "fsync", "rename", "replace", "link", "mkdir", "rmdir", "unlink"),
    *("truncate", "ftruncate", "write"),
)


class Points:
    """Counts file-system steps; kills the process, or fails, at a chosen one."""

    def __init__(self, kill_at: int, fail_at: int = 0, fail_with: int = errno.EIO) -> None:
        self.count = 0
        self._kill_at = kill_at
        self._fail_at = fail_at
        self._fail_with = fail_with

    @classmethod
    def of(cls, order: dict[str, Any], rank: int = 0) -> Points:
        """What an order says: kill_at, fail_at (a number, or [rank, number]), fail_with (errno)."""

        def number(name: str) -> int:
            given = order.get(name, 0)
            which, at = given if isinstance(given, list) else (rank, given)
            return int(at) if which == rank else 0

        return cls(number("kill_at"), number("fail_at"), order.get("fail_with", errno.EIO))

    def install(self) -> None:
        for name in HOOKED:
            setattr(os, name, self._counted(name, getattr(os, name)))
        plain = os.fdopen

        def fdopen(descriptor: int, *mode: Any) -> Any:
            stream = plain(descriptor, *mode)
            writes = mode and isinstance(mode[0], str) and ("w" in mode[0] or "+" in mode[0])
            return _Torn(stream, self) if writes else stream

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
