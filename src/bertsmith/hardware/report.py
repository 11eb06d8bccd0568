"""Examines this machine: runs the probes without a cached finding, each in a child process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from bertsmith.errors import unknown
from bertsmith.hardware import probe_process
from bertsmith.hardware.findings import (
    ABSENT,
    CRASHED,
    FAILED,
    SKIPPED,
    TIMED_OUT,
    WORKS,
    WRONG,
    Finding,
    is_usable,
    probe_stamp,
    read_findings,
    write_finding,
)
from bertsmith.hardware.machine import Compiler, Machine, compiler, compiler_path, this_machine
from bertsmith.hardware.probes import PROBES, Probe

log = logging.getLogger(__name__)

Progress = Callable[[str, Finding | None], None]  # None when a probe starts


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineReport:
    """The machine, its compiler, and a finding for each probe, in the order of the table."""

    machine: Machine
    compiler: Compiler | None
    load: float  # processes that wanted a processor over the last minute, before we started
    findings: tuple[Finding, ...]

    def get(self, name: str) -> Finding | None:
        """The finding of that name, if it is in the report."""
        return next((finding for finding in self.findings if finding.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of `bertsmith doctor --json`."""
        return {
            "machine": self.machine.to_json(),
            "compiler": asdict(self.compiler) if self.compiler else None,
            "load": self.load,
            "findings": [finding.to_json() for finding in self.findings],
        }


def examine(
    names: Iterable[str] | None = None,
    *,
    fresh: bool = False,
    quick: bool = False,
    progress: Progress | None = None,
    probes: Mapping[str, Probe] = PROBES,
) -> MachineReport:
    """A report on the named probes (default: all); cached findings are not measured again.

    `fresh` ignores the cache; `quick` leaves out probes that compile code and are not cached.
    """
    wanted = list(probes) if names is None else list(names)
    for name in wanted:
        if name not in probes:
            raise unknown("probe", name, probes)
    machine = this_machine()
    load = _load()
    known = {} if fresh else read_findings(machine)
    findings = []
    for name in wanted:
        probe = probes[name]
        finding = known.get(name)
        if finding is None or not is_usable(finding, probe):
            if progress:
                progress(name, None)
            finding = _judge(_run(name, probe, machine.threads, quick=quick), probe)
            write_finding(machine, finding)  # at once: an interrupted run keeps what it has
        findings.append(_judge(finding, probe))  # a cached one by the current tolerance
        if progress:
            progress(name, findings[-1])
    return MachineReport(machine=machine, compiler=compiler(), load=load, findings=tuple(findings))


def cached(name: str, *, probes: Mapping[str, Probe] = PROBES) -> Finding | None:
    """The cached finding of a probe on this machine; nothing is run."""
    if name not in probes:
        raise unknown("probe", name, probes)
    finding = read_findings(this_machine()).get(name)
    if finding is None or not is_usable(finding, probes[name]):
        return None
    return _judge(finding, probes[name])


def _run(name: str, probe: Probe, threads: int, *, quick: bool) -> Finding:
    """Runs one probe; failures and crashes are findings."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    blank = Finding(name=name, status=SKIPPED, date=now, stamp=probe_stamp(probe))
    if quick and probe.compiles:
        return replace(blank, date="", detail="has to be compiled; run without --quick")
    if not probe_process.able():
        return replace(blank, date="", detail="this program cannot start Python")
    if probe.compiles and not compiler_path():
        return replace(blank, status=ABSENT, detail="no C++ compiler was found")
    try:
        ended = probe_process.run(
            "bertsmith.hardware.probes",
            [probe.module, probe.option, str(threads), str(probe.limit)],
            limit=probe.limit,
            threads=threads,
        )
    except OSError as error:
        return replace(blank, status=FAILED, detail=f"cannot start a process: {error.strerror}")
    finding = _read(replace(blank, seconds=round(ended.seconds, 3)), ended, probe)
    if not finding.works:
        log.info("probe %s: %s (%s)", name, finding.status, finding.detail)
    return finding


def _read(blank: Finding, ended: probe_process.Ended, probe: Probe) -> Finding:
    """Turns the end of a child process into a finding."""
    if ended.timed_out:
        return replace(blank, status=TIMED_OUT, detail=f"no answer within {probe.limit:.0f} s")
    if ended.crash:
        return replace(blank, status=f"{CRASHED} {ended.crash}", detail=_why_crashed(ended.crash))
    if ended.code != 0:
        last = ended.stderr.strip().splitlines()[-1:]
        return replace(blank, status=FAILED, detail="".join(last)[:300] or f"code {ended.code}")
    if ended.answer is None:
        return replace(blank, status=FAILED, detail="its answer could not be read")
    if "absent" in ended.answer:
        return replace(blank, status=ABSENT, detail=str(ended.answer["absent"])[:300])
    try:
        return Finding.from_json(blank.to_json() | ended.answer | {"status": WORKS})
    except ValueError as problem:
        return replace(blank, status=FAILED, detail=f"its answer is invalid: {problem}")


def _judge(finding: Finding, probe: Probe) -> Finding:
    """WORKS or WRONG, by the tolerance of the table."""
    if finding.status not in (WORKS, WRONG):
        return finding
    if finding.error is None:
        return replace(finding, status=WRONG, detail="the result holds NaN or infinity")
    if finding.error > probe.tolerance:
        return replace(
            finding, status=WRONG, detail=f"off by {finding.error:.1e}, allowed {probe.tolerance:g}"
        )
    return replace(finding, status=WORKS)


def _why_crashed(name: str) -> str:
    reasons = {
        "SIGILL": "an instruction that the processor advertises but does not execute",
        "SIGKILL": "ended from outside, perhaps for lack of memory",
        "SIGALRM": "did not end in time",
    }
    return reasons.get(name, "ended by the operating system")


def _load() -> float:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # not on every system
        return 0.0
