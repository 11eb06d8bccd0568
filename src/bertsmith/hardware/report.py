"""Examines this machine: runs the probes without a cached finding, each in a child process."""

from __future__ import annotations

import logging
import math
import os
import time
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
    NOT_OFFERED,
    SKIPPED,
    UNFINISHED,
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

_LEAST_SECONDS = 1.0  # Python alone needs that long to start on a busy machine

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
    budget: float | None = None,
    progress: Progress | None = None,
    probes: Mapping[str, Probe] = PROBES,
) -> MachineReport:
    """A report on the named probes (default: all); cached findings are not measured again.

    `fresh` ignores the cache; `quick` leaves out probes that compile code and are not cached.
    `budget` bounds the seconds of all probes together: those that it cuts off are not cached.
    """
    wanted = list(probes) if names is None else list(names)
    for name in wanted:
        if name not in probes:
            raise unknown("probe", name, probes)
    machine = this_machine()
    load = _load()
    end = math.inf if budget is None else time.monotonic() + budget
    known = {} if fresh else read_findings(machine)
    findings = []
    for name in wanted:
        probe = probes[name]
        finding = known.get(name)
        if finding is None or not is_usable(finding, probe):
            if progress:
                progress(name, None)
            finding = _why_not_run(name, probe, machine, quick=quick)
            if finding is None:
                limit = min(probe.limit, end - time.monotonic())
                finding = _judge(_run(name, probe, machine.threads, limit), probe)
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


def _why_not_run(name: str, probe: Probe, machine: Machine, *, quick: bool) -> Finding | None:
    """The finding on a probe that need not or cannot be run; None: run it."""
    skipped = replace(_blank(name, probe), status=SKIPPED, date="")
    if quick and probe.compiles:
        return replace(skipped, detail="has to be compiled; run without --quick")
    if not probe_process.able():
        return replace(skipped, detail="this program cannot start Python")
    # A flag is a promise that only a run can prove, but what is not even promised is not there.
    missing = [flag for flag in probe.flags if flag not in machine.flags]
    if machine.flags and missing:
        detail = f"the flags of this processor do not list {', '.join(missing)}"
        return replace(_blank(name, probe), status=NOT_OFFERED, detail=detail)
    if probe.compiles and not compiler_path():
        return replace(_blank(name, probe), status=ABSENT, detail="no C++ compiler was found")
    return None


def _blank(name: str, probe: Probe) -> Finding:
    """A finding dated now, before anything is known."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Finding(name=name, status=UNFINISHED, date=now, stamp=probe_stamp(probe))


def _run(name: str, probe: Probe, threads: int, limit: float) -> Finding:
    """Runs one probe for at most `limit` seconds; failures and crashes are findings."""
    blank = _blank(name, probe)
    if limit < _LEAST_SECONDS:
        return replace(blank, date="", detail="not started: the time for all probes was used up")
    try:
        ended = probe_process.run(
            "bertsmith.hardware.probes",
            [probe.module, probe.option, str(threads), str(limit)],
            limit=limit,
            threads=threads,
        )
    except OSError as error:
        return replace(blank, status=FAILED, detail=f"cannot start a process: {error.strerror}")
    blank = replace(blank, seconds=round(ended.seconds, 3))
    if ended.timed_out:
        finding = replace(blank, date="", detail=f"no answer within {limit:.0f} s")
    else:
        finding = _read(blank, ended, probe)
    if not finding.works:
        log.info("probe %s: %s (%s)", name, finding.status, finding.detail)
    return finding


def _read(blank: Finding, ended: probe_process.Ended, probe: Probe) -> Finding:
    """Turns the end of a child process into a finding."""
    if ended.crash:
        detail = _why_crashed(ended.crash, probe)
        return replace(blank, status=f"{CRASHED} {ended.crash}", detail=detail)
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


def _why_crashed(signal: str, probe: Probe) -> str:
    if signal == "SIGILL" and probe.flags:
        return f"the processor lists {', '.join(probe.flags)} and does not execute all of it"
    reasons = {
        "SIGILL": "an instruction that this processor does not execute",
        "SIGKILL": "ended from outside, perhaps for lack of memory",
        "SIGALRM": "did not end in time",
    }
    return reasons.get(signal, "ended by the operating system")


def _load() -> float:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):  # not on every system
        return 0.0
