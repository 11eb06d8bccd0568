"""Stop requests by signal, for commands: the first saves after the step, the second ends at once.

A library or a notebook does not install these: there an interrupt raises KeyboardInterrupt.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Self

log = logging.getLogger(__name__)

# A terminal's ^C reaches every process of a group, and a launcher passes it on once more.
_SAME_REQUEST = 0.5
_WATCHED = ("SIGTERM", "SIGINT", "SIGHUP")


class StopRequest:
    """Asks a run to stop after its step; this one never does."""

    received: str | None = None  # why to stop, such as the name of a signal; None: continue


class StopSignals(StopRequest):
    """A `StopRequest` that SIGTERM, SIGINT and SIGHUP make while it is entered."""

    def __init__(self) -> None:
        self._since = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            log.info("not in the main thread: signals keep their usual effect")
            return self
        for name in _WATCHED:
            number = getattr(signal, name, None)
            # A process started with nohup ignores SIGHUP and must keep doing so.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.received is None:
            self.received = signal.Signals(number).name
            self._since = now
        elif now - self._since >= _SAME_REQUEST:
            # Nothing to tidy: whatever is being written is staged and never half in place.
            os._exit(128 + number)
