"""Progress of a run: steps, tokens per second, time left, losses."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

WINDOW = 20.0  # seconds that the speed is taken over


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of a run after a step."""

    share: float  # of training
    tokens: int
    tokens_per_second: float  # real tokens, lately
    seconds: float  # used by the run, over all resumes
    left: float  # about how many seconds are left
    step: int = 0
    steps: int | None = None  # None: by the clock
    rate: float = 0.0
    losses: Mapping[str, float] = field(default_factory=dict)
    accuracy: Mapping[str, float] = field(default_factory=dict)
    phase: str = ""  # what is done before the first step, if it is not a step


Watcher = Callable[[Progress], None]


class Speed:
    """Tokens per second over the last stretch; pauses for evaluation and saving do not count."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._last = time.monotonic()
        self._busy = 0.0
        self._tokens = 0

    def start(self) -> None:
        """A step begins."""
        self._last = time.monotonic()

    def add(self, tokens: int) -> float:
        """A step of so many tokens ended; the speed now."""
        now = time.monotonic()
        self._busy += now - self._last
        self._last = now
        self._tokens += tokens
        self._marks.append((self._busy, self._tokens))
        while len(self._marks) > 2 and self._busy - self._marks[1][0] > WINDOW:
            self._marks.popleft()
        first_time, first_tokens = self._marks[0] if len(self._marks) > 1 else (0.0, 0)
        return (self._tokens - first_tokens) / max(self._busy - first_time, 1e-9)
