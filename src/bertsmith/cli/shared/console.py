"""Progress and notes for the user, on standard error only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SECONDS_BETWEEN_LINES = 5.0


class Meter(Protocol):
    """Something that shows how far a long piece of work is."""

    def update(self, done: int, share: float | None) -> None:
        """`done` texts are ready; `share` of the work (0 to 1) if it is known."""


@contextmanager
def meter(title: str, *, quiet: bool) -> Iterator[Meter]:
    """A bar on a terminal, a line every few seconds elsewhere, nothing when quiet."""
    if quiet:
        yield _Silence()
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield _Bar(progress, title)
    else:
        yield _LogLines(title)


def note(message: str, *, quiet: bool = False) -> None:
    """A remark for people, on standard error."""
    if not quiet:
        sys.stderr.write(f"note: {message}\n")


def duration(seconds: float) -> str:
    """Seconds as a readable time."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


class _Silence:
    def update(self, done: int, share: float | None) -> None:
        """Show nothing."""


class _Bar:
    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task(title, total=None, rate="")
        self._pace = _Pace()

    def update(self, done: int, share: float | None) -> None:
        # rich wants a total in the unit of `completed`: estimate it from the share.
        total = done / share if share else None
        rate = f"{self._pace.rate(done):,.0f} texts/s"
        self._progress.update(self._task, completed=done, total=total, rate=rate)


class _LogLines:
    def __init__(self, title: str) -> None:
        self._title = title
        self._pace = _Pace()
        self._shown = time.monotonic()

    def update(self, done: int, share: float | None) -> None:
        now = time.monotonic()
        if now - self._shown < SECONDS_BETWEEN_LINES:
            return
        self._shown = now
        parts = [f"{done:,} texts", f"{self._pace.rate(done):,.0f} texts/s"]
        if share:
            left = self._pace.elapsed() * (1 - share) / share
            parts.append(f"{share:.0%}, about {duration(left)} left")
        sys.stderr.write(f"{self._title}: {', '.join(parts)}\n")
        sys.stderr.flush()


class _Pace:
    """Texts per second since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def elapsed(self) -> float:
        return time.monotonic() - self._start

    def rate(self, done: int) -> float:
        return done / max(self.elapsed(), 1e-9)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
