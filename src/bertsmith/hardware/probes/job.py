"""What a probe is asked and what it answers; free of torch, so that the child starts fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a probe is asked for."""

    threads: int
    option: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a probe answers; rates are GFLOP/s by shape."""

    gflops: dict[str, float]
    fp32_gflops: dict[str, float]
    error: float
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class Measure(Protocol):
    """The one function a probe module must have.

    A path this machine does not have is told by raising HardwareError.
    """

    def __call__(self, job: Job) -> Measurement:
        """Runs the path and says how fast and how exact it was."""
        ...
