"""Shares: a bounded amount that clients take parts of, so that one cannot take all of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Caller:
    """Who asks, and until when the answer is of use (on the clock of the event loop)."""

    client: str
    deadline: float
    queued: float = 0.0  # seconds from entering the queue to the last of its batches


class Shares:
    """An amount in which no client holds more than is left free for others.

    A client alone has at most half of it, two at most a third each: whoever comes next always
    finds room.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._clients: Counter[str] = Counter()

    def take(self, client: str, amount: int = 1) -> bool:
        """Whether the client has got that much more."""
        if self._clients[client] + amount > self.limit - self.held - amount:
            if not self._clients[client]:
                del self._clients[client]
            return False
        self._clients[client] += amount
        self.held += amount
        return True

    def give(self, client: str, amount: int = 1) -> None:
        """The client is done with that much."""
        self.held -= amount
        self._clients[client] -= amount
        if not self._clients[client]:
            del self._clients[client]
