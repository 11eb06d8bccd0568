"""Signals that end a run well: the first finishes the step and saves, the second ends at once."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

log = logging.getLogger(__name__)

STOPPED = 75  # EX_TEMPFAIL: the state is saved, the same command goes on
# A terminal's ^C reaches every process of a group, and a launcher passes it on once more.
_SAME_REQUEST = 0.5
_WATCHED = ("SIGTERM", "SIGINT", "SIGHUP")


class StopSignals:
    """Watches SIGTERM, SIGINT and SIGHUP while it is entered."""

    def __init__(self) -> None:
        self.received: str | None = None
        self._since = 0.0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is not threading.main_thread():
            log.info("not in the main thread: signals keep their usual effect")
            return self
        for name in _WATCHED:
            number = getattr(signal, name, None)
            # A process started with nohup ignores SIGHUP and must go on doing so.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
