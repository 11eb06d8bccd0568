"""What one probe found on this machine, as a value that goes to and from JSON."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import json_digest
from bertsmith.hardware.environment import cache_dir
from bertsmith.hardware.machine import Machine, compiler_path
from bertsmith.hardware.probes import PROBE_SET, Probe

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


log = logging.getLogger(__name__)

_FORMAT = 1
_BYTES = 4_000_000  # a report is about 10 kB; anything far beyond is not ours
_PASSING_FOR = timedelta(days=1)


def machine_key(machine: Machine) -> str:
    """A name for everything that a finding depends on."""
    parts = machine.to_json()
    del parts["memory"]  # may shrink and grow with the container
    return json_digest({**parts, "probe_set": PROBE_SET, "format": _FORMAT})[:24]


def probe_stamp(probe: Probe) -> str:
    """A name for one edition of a probe, so that changing one leaves the others cached."""
    parts: dict[str, Any] = {**asdict(probe), "variables": dict(probe.variables)}
    for wording in ("about", "slow", "tolerance"):  # judged or shown later, not measured
        del parts[wording]
    return json_digest({**parts, "compiler": compiler_path() if probe.compiles else ""})[:16]


def read_findings(machine: Machine) -> dict[str, Finding]:
    """The findings kept for this machine; a broken file counts as none and is logged."""
    path = _path(machine)
    try:
        with path.open("rb") as file:
            raw = file.read(_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        log.warning("cannot read %s (%s); probing again", path, error.strerror)
        return {}
    try:
        found = json.loads(raw)
        body = found["findings"]
        if found["sha256"] != json_digest(body):
            raise ValueError("its checksum does not match")
        return {name: Finding.from_json(item) for name, item in body.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        log.warning("%s is damaged (%s); probing again", path, error)
        return {}


def is_usable(finding: Finding | None, probe: Probe) -> bool:
    """Whether a kept finding still speaks for the probe."""
    if finding is None or finding.stamp != probe_stamp(probe):
        return False
    if finding.status not in PASSING:
        return True
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(finding.date)
    except (TypeError, ValueError):
        return False
    return timedelta(0) <= age < _PASSING_FOR


def write_finding(machine: Machine, finding: Finding) -> None:
    """Adds a finding to the file; failing to is logged and no more, since it is only a cache."""
    if finding.status == SKIPPED:
        return
    kept = read_findings(machine)  # read again: another process may have added some
    kept[finding.name] = finding
    body = {name: kept[name].to_json() for name in sorted(kept)}
    path = _path(machine)
    content = {"machine": machine.to_json(), "sha256": json_digest(body), "findings": body}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_staged(path, json.dumps(content, indent=1).encode("utf-8"))
    except (OSError, WriteError) as error:
        log.warning("findings are not kept: %s", error)


def _path(machine: Machine) -> Path:
    return cache_dir() / "hardware" / f"{machine_key(machine)}.json"
