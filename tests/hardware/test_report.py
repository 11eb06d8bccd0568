"""Findings from whatever a probe does, and what the cache keeps of them."""

import json
import logging
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bertsmith.errors import ConfigError
from bertsmith.hardware import findings
from bertsmith.hardware import report as reports
from bertsmith.hardware.environment import cache_dir
from bertsmith.hardware.findings import Finding
from bertsmith.hardware.machine import this_machine
from bertsmith.hardware.probes import Probe
from bertsmith.hardware.report import cached, examine

Planted = Callable[..., dict[str, Probe]]


def finding_of(probes: dict[str, Probe], **options: bool) -> Finding:
    found = examine(probes=probes, **options).get("planted")
    assert found is not None
    return found


def cache_file() -> Path:
    (path,) = (cache_dir() / "hardware").glob("*.json")
    return path


@pytest.mark.parametrize(
    ("option", "status", "detail"),
    [
        ("works", "works", ""),
        (f"signal={signal.SIGILL.value}", "crashed SIGILL", "does not execute"),
        ("off=0.5", "wrong numbers", "allowed 0.01"),
        ("off=nan", "wrong numbers", "NaN"),
        ("off=inf", "wrong numbers", "NaN"),
        ("absent", "absent", "not on this machine"),
        ("raise", "failed", "the planted reason"),
    ],
)
def test_each_end_of_a_probe_is_a_finding(
    planted: Planted, option: str, status: str, detail: str
) -> None:
    found = finding_of(planted(option))
    assert found.status == status
    assert detail in found.detail
    assert found.works == (status == "works")
    json.dumps(found.to_json(), allow_nan=False)
    assert Finding.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_probe_that_does_not_end_is_reported_and_not_cached(planted: Planted) -> None:
    probes = planted("sleep=60", limit=1.0)
    found = finding_of(probes)
    assert (found.status, found.detail) == ("not finished in time", "no answer within 1 s")
    assert cached("planted", probes=probes) is None


def test_a_budget_bounds_all_probes_together(planted: Planted, tmp_path: Path) -> None:
    mark = tmp_path / "runs"
    slow, quick = planted("sleep=60")["planted"], planted(f"count={mark}")["planted"]
    probes = {"first": quick, "slow": slow, "last": quick}
    examine(["first"], probes=probes)
    start = time.monotonic()
    found = examine(probes=probes, budget=2.0)
    assert time.monotonic() - start < 10
    assert [finding.status for finding in found.findings] == [
        "works",
        "not finished in time",
        "not finished in time",
    ]
    assert "used up" in found.findings[2].detail
    assert cached("last", probes=probes) is None
    later = examine(["last"], probes=probes)
    assert later.findings[0].works
    assert mark.read_text() == "xx"  # the first was cached, the last ran once there was time


def test_what_the_flags_do_not_list_is_not_offered_and_not_run(
    planted: Planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "runs"
    probes = {"planted": replace(planted(f"count={mark}")["planted"], flags=("fma", "avx512_bf16"))}
    plain = replace(this_machine(), flags=("avx2", "fma"))
    monkeypatch.setattr(reports, "this_machine", lambda: plain)
    found = finding_of(probes)
    assert found.status == "not offered"
    assert found.detail == "the flags of this processor do not list avx512_bf16"
    assert not mark.exists()
    unknown = replace(plain, flags=())  # no /proc/cpuinfo: only a run can tell
    monkeypatch.setattr(reports, "this_machine", lambda: unknown)
    assert finding_of(probes).works


def test_a_trap_on_an_offered_instruction_names_the_flags(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = planted(f"signal={signal.SIGILL.value}")
    probes = {"planted": replace(probes["planted"], flags=("amx_tile",))}
    machine = replace(this_machine(), flags=("amx_tile",))
    monkeypatch.setattr(reports, "this_machine", lambda: machine)
    assert (
        finding_of(probes).detail == "the processor lists amx_tile and does not execute all of it"
    )


def test_a_probe_module_that_is_not_installed_is_absent() -> None:
    probe = Probe(module="bertsmith.runtime.no_such.probe", about="", tolerance=1.0)
    found = finding_of({"planted": probe})
    assert found.status == "absent"
    assert "bertsmith.runtime.no_such.probe" in found.detail


def test_a_compiling_probe_is_skipped_when_quick_and_the_skip_is_not_kept(planted: Planted) -> None:
    probes = planted("works", compiles=True)
    assert finding_of(probes, quick=True).status == "skipped"
    assert cached("planted", probes=probes) is None
    assert finding_of(probes).status == "works"
    assert finding_of(probes, quick=True).status == "works"  # kept by now


def test_without_a_compiler_a_compiling_probe_is_absent(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/no/such/compiler")
    probes = planted("works", compiles=True)
    found = finding_of(probes)
    assert (found.status, found.detail) == ("absent", "no C++ compiler was found")
    monkeypatch.delenv("CXX")
    monkeypatch.setattr(findings, "compiler_path", lambda: "/usr/bin/new")
    assert cached("planted", probes=probes) is None  # one was installed since: look again


def test_a_name_that_is_not_in_the_table_is_an_error(planted: Planted) -> None:
    with pytest.raises(ConfigError, match="did you mean 'planted'"):
        examine(["plantd"], probes=planted("works"))


def test_a_probe_runs_once_and_again_only_when_asked(planted: Planted, tmp_path: Path) -> None:
    mark = tmp_path / "runs"
    probes = planted(f"count={mark}")
    assert cached("planted", probes=probes) is None
    seen = []
    for fresh in (False, False, True):
        examine(fresh=fresh, probes=probes, progress=lambda *event: seen.append(event))
    assert mark.read_text() == "xx"
    assert [finding is None for _, finding in seen] == [True, False, False, True, False]
    kept = cached("planted", probes=probes)
    assert kept is not None
    assert kept.speedup == pytest.approx(3.0)
    assert kept.date[:2] == "20"


def test_only_what_is_missing_is_run(planted: Planted, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    probes = {
        "a": planted(f"count={first}")["planted"],
        "b": planted(f"count={second}")["planted"],
    }
    examine(["a"], probes=probes)
    found = examine(probes=probes)
    assert [finding.name for finding in found.findings] == ["a", "b"]
    assert (first.read_text(), second.read_text()) == ("x", "x")
    changed = {**probes, "b": replace(probes["b"], edition=2)}
    examine(probes=changed)
    assert (first.read_text(), second.read_text()) == ("x", "xx")


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other", "deep"])
def test_a_damaged_cache_is_logged_and_measured_again(
    planted: Planted, tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    mark = tmp_path / "runs"
    probes = planted(f"count={mark}")
    examine(probes=probes)
    whole = cache_file().read_bytes()
    broken = {
        "flip": whole.replace(b"300.0", b"900.0"),
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "other": b'{"findings": [], "sha256": 7}',
        "deep": b"[" * 100_000,
    }[damage]
    assert broken != whole
    cache_file().write_bytes(broken)
    with caplog.at_level(logging.WARNING):
        examine(probes=probes)
    assert "damaged" in caplog.text
    assert mark.read_text() == "xx"
    caplog.clear()
    examine(probes=probes)  # mended
    assert not caplog.text
    assert mark.read_text() == "xx"


@pytest.mark.parametrize(
    "change",
    [
        {"cpu": "another"},
        {"flags": ("amx_tile",)},
        {"kernel": "Linux 9"},
        {"torch": "9.9"},
        {"bertsmith": "9.9"},
        {"threads": 99},
        {"variables": {"ONEDNN_MAX_CPU_ISA": "AVX2"}},
    ],
)
def test_findings_of_another_machine_or_torch_are_not_used(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    probes = planted("works")
    examine(probes=probes)
    other = replace(this_machine(), **change)  # type: ignore[arg-type]
    monkeypatch.setattr(reports, "this_machine", lambda: other)
    assert cached("planted", probes=probes) is None


@pytest.mark.parametrize(
    "date", ["2001-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00", "", "x"]
)
def test_a_failure_is_valid_for_a_day_only(planted: Planted, date: str) -> None:
    probes = planted("raise")
    found = finding_of(probes)
    assert findings.is_usable(found, probes["planted"])
    assert not findings.is_usable(replace(found, date=date), probes["planted"])
    assert findings.is_usable(replace(found, date=date, status="crashed SIGILL"), probes["planted"])


def test_a_cache_that_cannot_be_written_costs_a_log_line_only(
    planted: Planted, caplog: pytest.LogCaptureFixture
) -> None:
    (cache_dir() / "hardware").write_text("a file where the folder should be")
    assert finding_of(planted("works")).works
    assert "cannot" in caplog.text


def test_no_temporary_file_stays_beside_the_cache(planted: Planted) -> None:
    examine(probes=planted("works"))
    assert [path.suffix for path in (cache_dir() / "hardware").iterdir()] == [".json"]
