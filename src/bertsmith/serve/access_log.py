"""AccessLog: a line of JSON per request, on a disk or a pipe that may be full, slow or gone."""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

MOST_BYTES = 1_000_000  # of lines that wait for a slow reader
PIECE = 4_096  # bytes that a pipe with room takes without waiting (PIPE_BUF)
CLOSE_SECONDS = 1.0


class AccessLog:
    """Lines to a descriptor; requests never wait for it, and never fail with it.

    What a reader does not take in time, or the system refuses, is lost: `lost` counts such lines,
    and `warn` says so once.
    """

    def __init__(
        self,
        descriptor: int | None,
        *,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """No descriptor: no log."""
        self.lost = 0
        self._descriptor = descriptor
        self._warn = warn
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._torn = False  # the first line was written in part
        self._writable = select.poll()
        if descriptor is not None:
            self._writable.register(descriptor, select.POLLOUT)

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Log one request."""
        if self._descriptor is None:
            return
        line = json.dumps(record).encode() + b"\n"
        if self._size + len(line) > MOST_BYTES:
            self._lose(1, "its reader is too slow")
        else:
            self._lines.append(line)
            self._size += len(line)
        self.flush()

    def flush(self) -> None:
        """Write what can be written without waiting."""
        while self._lines and self._writable.poll(0):
            piece = self._piece()
            try:
                written = os.write(self._descriptor or 0, piece)
            except BlockingIOError:
                return
            except OSError as error:
                # The rest of a line that was begun stays, so that the next one begins anew.
                kept = [self._lines.popleft()] if self._torn else []
                self._lose(len(self._lines), (error.strerror or "unknown").lower())
                self._lines = deque(kept)
                self._size = sum(map(len, kept))
                return
            self._remove(written)

    def close(self) -> None:
        """Write what is left; a reader that does not take it is not waited for."""
        end = time.monotonic() + CLOSE_SECONDS
        while self._lines and time.monotonic() < end:
            self.flush()
            if self._lines:
                time.sleep(0.01)
        if self._lines:
            self._lose(len(self._lines), "its reader is too slow")
            self._lines.clear()

    def _piece(self) -> bytes:
        """The first lines, as many as a pipe takes at once."""
        lines: list[bytes] = []
        size = 0
        for line in self._lines:
            size += len(line)
            if lines and size > PIECE:
                break
            lines.append(line)
        return b"".join(lines)[:PIECE]

    def _remove(self, written: int) -> None:
        self._size -= written
        self._torn = False
        while written:
            line = self._lines.popleft()
            if len(line) > written:
                self._lines.appendleft(line[written:])
                self._torn = True
                return
            written -= len(line)

    def _lose(self, lines: int, reason: str) -> None:
        if self._warn is not None:
            warn, self._warn = self._warn, None
            warn(
                f"the log of requests cannot be written ({reason}); the service goes on, and "
                "bertsmith_log_lines_lost in /metrics counts the lines that are missing"
            )
        self.lost += lines
