"""Findings of probes on this machine, and their cache on disk."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import FiniteFloat, TypeAdapter

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import json_digest
from bertsmith.hardware.environment import cache_dir
from bertsmith.hardware.machine import Machine, compiler_path
from bertsmith.hardware.probes import PROBE_SET, Probe

WORKS = "works"
WRONG = "wrong numbers"
UNFINISHED = "not finished in time"
ABSENT = "absent"
NOT_OFFERED = "not offered"  # the processor's flags do not list what the path needs
SKIPPED = "skipped"
FAILED = "failed"
CRASHED = "crashed"  # followed by the name of the signal
STATUSES = (WORKS, WRONG, UNFINISHED, ABSENT, NOT_OFFERED, SKIPPED, FAILED)
NEVER_CACHED = (SKIPPED, UNFINISHED)  # says nothing about the path


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One probe's outcome; rates are GFLOP/s by shape, errors relative to float64."""

    name: str
    status: str
    gflops: Mapping[str, FiniteFloat] = field(default_factory=dict)
    fp32_gflops: Mapping[str, FiniteFloat] = field(default_factory=dict)  # same child, same moments
    error: FiniteFloat | None = None
    seconds: FiniteFloat = 0.0
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
        """The rate relative to fp32 in the same process: geometric mean over the shapes."""
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
        """A JSON object, including the speed-up."""
        return {**asdict(self), "speedup": self.speedup}

    @classmethod
    def from_json(cls, value: object) -> Finding:
        """The reverse of `to_json`; raises ValueError for anything else."""
        finding = _adapter().validate_python(value)
        if finding.status in STATUSES or finding.status.startswith(f"{CRASHED} "):
            return finding
        raise ValueError(f"{finding.status!r} is not a status")


@lru_cache(maxsize=1)
def _adapter() -> TypeAdapter[Finding]:
    return TypeAdapter(Finding)


log = logging.getLogger(__name__)

_FORMAT = 1
_BYTES = 4_000_000  # a report is about 10 kB; anything far beyond is not ours
_FAILED_FOR = timedelta(days=1)


def machine_key(machine: Machine) -> str:
    """A digest of everything that a finding depends on."""
    parts = machine.to_json()
    del parts["memory"]  # may shrink and grow with the container
    return json_digest({**parts, "probe_set": PROBE_SET, "format": _FORMAT})[:24]


def probe_stamp(probe: Probe) -> str:
    """A digest of one version of a probe, so that changing one leaves the others cached."""
    parts = asdict(probe)
    for wording in ("about", "tolerance"):  # judged or shown later, not measured
        del parts[wording]
    return json_digest({**parts, "compiler": compiler_path() if probe.compiles else ""})[:16]


def read_findings(machine: Machine) -> dict[str, Finding]:
    """The cached findings of this machine; a broken file counts as empty and is logged."""
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
        content = json.loads(raw)
        body = content["findings"]
        if content["sha256"] != json_digest(body):
            raise ValueError("its checksum does not match")
        return {name: Finding.from_json(item) for name, item in body.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        log.warning("%s is damaged (%s); probing again", path, error)
        return {}


def is_usable(finding: Finding | None, probe: Probe) -> bool:
    """Whether a cached finding is still valid for the probe."""
    if finding is None or finding.stamp != probe_stamp(probe):
        return False
    if finding.status != FAILED:  # may change on the same machine: a full disk of the compiler
        return True
    try:
        age = datetime.now(UTC) - datetime.fromisoformat(finding.date)
    except (TypeError, ValueError):
        return False
    return timedelta(0) <= age < _FAILED_FOR


def write_finding(machine: Machine, finding: Finding) -> None:
    """Adds a finding to the cache; a failure is only logged."""
    if finding.status in NEVER_CACHED:
        return
    findings = read_findings(machine)  # read again: another process may have added some
    findings[finding.name] = finding
    body = {name: findings[name].to_json() for name in sorted(findings)}
    path = _path(machine)
    content = {"machine": machine.to_json(), "sha256": json_digest(body), "findings": body}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_staged(path, json.dumps(content, indent=1).encode("utf-8"))
    except (OSError, WriteError) as error:
        log.warning("findings are not cached: %s", error)


def _path(machine: Machine) -> Path:
    return cache_dir() / "hardware" / f"{machine_key(machine)}.json"
