"""A stop request that comes after some steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class StopAfter:
    """Asks the run to stop once it was asked so many times."""

    looks: int

    @property
    def received(self) -> str | None:
        self.looks -= 1
        return "SIGTERM" if self.looks < 0 else None
