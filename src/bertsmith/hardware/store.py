"""Findings on disk: one file for each machine, system and torch, sealed and replaced whole."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import write_staged
from bertsmith.hardware.environment import cache_dir
from bertsmith.hardware.finding import PASSING, SKIPPED, Finding
from bertsmith.hardware.machine import Machine, compiler_path
from bertsmith.hardware.probes import PROBE_SET, Probe

log = logging.getLogger(__name__)

_FORMAT = 1
_BYTES = 4_000_000  # a report is about 10 kB; anything far beyond is not ours
_PASSING_FOR = timedelta(days=1)


def machine_key(machine: Machine) -> str:
    """A name for everything that a finding depends on."""
    parts = machine.to_json()
    del parts["memory"]  # may shrink and grow with the container
    return _digest({**parts, "probe_set": PROBE_SET, "format": _FORMAT})[:24]


def probe_stamp(probe: Probe) -> str:
    """A name for one edition of a probe, so that changing one leaves the others cached."""
    parts: dict[str, Any] = {**asdict(probe), "variables": dict(probe.variables)}
    for wording in ("about", "slow", "tolerance"):  # judged or shown later, not measured
        del parts[wording]
    return _digest({**parts, "compiler": compiler_path() if probe.compiles else ""})[:16]


def read(machine: Machine) -> dict[str, Finding]:
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
        if found["sha256"] != _digest(body):
            raise ValueError("its checksum does not match")
        return {name: Finding.from_json(item) for name, item in body.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        log.warning("%s is damaged (%s); probing again", path, error)
        return {}


def usable(finding: Finding | None, probe: Probe) -> bool:
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


def write(machine: Machine, finding: Finding) -> None:
    """Adds a finding to the file; failing to is logged and no more, since it is only a cache."""
    if finding.status == SKIPPED:
        return
    kept = read(machine)  # read again: another process may have added some
    kept[finding.name] = finding
    body = {name: kept[name].to_json() for name in sorted(kept)}
    path = _path(machine)
    content = {"machine": machine.to_json(), "sha256": _digest(body), "findings": body}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_staged(path, json.dumps(content, indent=1).encode("utf-8"))
    except (OSError, WriteError) as error:
        log.warning("findings are not kept: %s", error)


def _path(machine: Machine) -> Path:
    return cache_dir() / "hardware" / f"{machine_key(machine)}.json"


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
