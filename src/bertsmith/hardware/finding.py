"""What one probe found on this machine, as a value that goes to and from JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

WORKS = "works"
WRONG = "wrong numbers"
TIMED_OUT = "timed out"
ABSENT = "absent"
SKIPPED = "skipped"
FAILED = "failed"
CRASHED = "crashed"  # followed by the name of the signal
STATUSES = (WORKS, WRONG, TIMED_OUT, ABSENT, SKIPPED, FAILED)
# What may be different tomorrow on the same machine (a busy one, a compiler's full disk).
PASSING = (TIMED_OUT, FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One probe's outcome; rates are GFLOP/s by shape, errors relative to float64."""

    name: str
    status: str
    gflops: Mapping[str, float] = field(default_factory=dict)
    fp32_gflops: Mapping[str, float] = field(default_factory=dict)  # same child, same moments
    error: float | None = None
    seconds: float = 0.0
    detail: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    date: str = ""  # UTC, ISO 8601; empty for what was not run
    stamp: str = ""  # which edition of the probe this came from

    @property
    def works(self) -> bool:
        """Whether the path ran and its numbers were right."""
        return self.status == WORKS

    @property
    def speedup(self) -> float | None:
        """How many times as fast as fp32 measured beside it: geometric mean over the shapes."""
        shared = [shape for shape in self.gflops if self.fp32_gflops.get(shape, 0.0) > 0.0]
        rates = [self.gflops[shape] / self.fp32_gflops[shape] for shape in shared]
        if not rates or min(rates) <= 0.0:
            return None
        return math.exp(math.fsum(map(math.log, rates)) / len(rates))

    @property
    def best_gflops(self) -> float | None:
        """The highest rate over the shapes."""
        return max(self.gflops.values(), default=None)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with the speed-up worked out for whoever reads the file."""
        return {**asdict(self), "speedup": self.speedup}

    @classmethod
    def from_json(cls, found: object) -> Finding:
        """The reverse of `to_json`; raises TypeError or ValueError for anything else."""
        if not isinstance(found, dict):
            raise TypeError("a finding must be an object")
        error = found.get("error")
        return cls(
            name=_text(found, "name"),
            status=_status(_text(found, "status")),
            gflops=rates(found.get("gflops")),
            fp32_gflops=rates(found.get("fp32_gflops")),
            error=None if error is None else number(error),
            seconds=number(found.get("seconds", 0.0)),
            detail=_text(found, "detail"),
            facts=facts(found.get("facts")),
            date=_text(found, "date"),
            stamp=_text(found, "stamp"),
        )


def rates(found: object) -> dict[str, float]:
    """A table of rates by shape; raises TypeError or ValueError for anything else."""
    if not isinstance(found, dict):
        raise TypeError("rates must be an object")
    return {str(shape): number(value) for shape, value in found.items()}


def number(found: object) -> float:
    """A finite number; raises ValueError for anything else."""
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise ValueError(f"{found!r} is not a finite number")
    return float(found)


def facts(found: object) -> dict[str, Any]:
    """Whatever else a probe wants to tell, as an object."""
    if not isinstance(found, dict):
        raise TypeError("facts must be an object")
    return found


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise TypeError(f"{key} must be a string")
    return value


def _status(status: str) -> str:
    if status in STATUSES or status.startswith(f"{CRASHED} "):
        return status
    raise ValueError(f"{status!r} is not a status")
