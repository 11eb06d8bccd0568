"""Input and output of a probe; without torch, so that the child process starts fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """The input of a probe."""

    threads: int
    option: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The output of a probe; rates are GFLOP/s by shape."""

    gflops: dict[str, float]
    fp32_gflops: dict[str, float]
    error: float
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class Measure(Protocol):
    """The one function a probe module must have.

    It raises HardwareError where this machine does not have the path.
    """

    def __call__(self, job: ProbeJob) -> Measurement:
        """Measures the speed and the error of the path."""
        ...
