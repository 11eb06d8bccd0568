"""The table of probes, the measuring inside them, and a real run on this machine."""

import importlib.util
from pathlib import Path

import pytest
import torch

from bertsmith.hardware import machine, probes
from bertsmith.hardware.probes import PROBES, ProbeJob, measuring, threads
from bertsmith.hardware.report import examine

SUPPORT = {"__init__", "__main__", "measuring"}


def test_every_probe_file_is_in_the_table_and_every_entry_has_its_file() -> None:
    folder = Path(probes.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - SUPPORT
    ours = {entry.module for entry in PROBES.values() if entry.module.startswith(probes.__name__)}
    assert {f"{probes.__name__}.{stem}" for stem in files} == ours
    for module in ours:
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert "def measure(job: ProbeJob) -> Measurement:" in Path(str(spec.origin)).read_text()


def test_the_table_imports_no_torch_and_no_upper_layer() -> None:
    text = "".join(
        (Path(probes.__file__).parent.parent / name).read_text()
        for name in (
            "report.py",
            "choice.py",
            "probe_process.py",
            "machine.py",
            "probes/__init__.py",
        )
    )
    assert "import torch" not in text
    assert "bertsmith.runtime" not in text


def test_one_wrong_value_in_a_thousand_shows_in_the_error() -> None:
    reference = torch.randn(40, 25, dtype=torch.float64)
    found = reference.clone()
    assert measuring.relative_error(found, reference) == 0.0
    found[3, 4] += 1.0
    assert measuring.relative_error(found, reference) > 0.1
    found[3, 4] = torch.nan
    error = measuring.worse(0.5, measuring.relative_error(found, reference))
    assert error != error
    assert measuring.worse(0.1, 0.2) == measuring.worse(0.2, 0.1) == 0.2


def test_a_path_that_goes_wrong_only_on_odd_shapes_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measuring, "SHAPES", ((64, 32, 48),))

    def wrong_at_edges(x: torch.Tensor, w: torch.Tensor) -> measuring.Product:
        good = x @ w.t()
        if x.shape[0] % 16:
            good[-1] = 0
        return lambda: good

    before = torch.get_num_threads()
    found = measuring.measure_linear(wrong_at_edges, ProbeJob(threads=before))
    assert found.error > 0.1
    assert set(found.gflops) == set(found.fp32_gflops) == {"64x32x48"}


def test_a_very_slow_path_is_not_run_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: float(next(clock)))
    calls = []
    measuring.race(lambda: calls.append("path"), lambda: calls.append("plain"))  # type: ignore[arg-type, return-value]
    assert calls == ["path", "plain"]


def test_thread_counts_double_up_to_the_number_itself() -> None:
    assert [threads.counts(most) for most in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8]]


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("", ("", ())),
        (
            "model name\t: X\ncpu family\t: 6\nmodel\t: 7\nstepping\t: 2\nflags\t: b a\n\n"
            "model name\t: Y\n",
            ("X (family 6, model 7, stepping 2)", ("a", "b")),
        ),
        ("processor\t: 0\nFeatures\t: fp asimd\n", ("", ("asimd", "fp"))),
        ("garbage without colons", ("", ())),
    ],
)
def test_the_processor_is_named_as_far_as_the_system_knows_it(
    cpuinfo: str, expected: tuple[str, tuple[str, ...]]
) -> None:
    assert machine.cpu_and_flags(cpuinfo) == expected


def test_a_system_without_cpuinfo_still_has_a_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "_CPUINFO", tmp_path / "none")
    found = machine.this_machine()
    assert found.cpu
    assert found.flags == ()


@pytest.mark.slow
def test_plain_fp32_and_the_bf16_paths_are_really_examined() -> None:
    report = examine(["fp32_gemm", "fp32_onednn", "bf16_onednn", "mkl_bf16"])
    plain, exact, onednn, mkl = report.findings
    assert plain.works
    assert plain.speedup == pytest.approx(1.0)
    assert plain.error is not None
    assert plain.error < 1e-5
    assert exact.status in ("works", "absent")
    assert not exact.works or exact.error < 1e-5
    for finding in (onednn, mkl):  # right, or a finding: never a crash of this process
        assert finding.works or finding.status.startswith("crashed") or finding.status == "absent"
        if finding.works:
            assert finding.error is not None
            assert 1e-4 < finding.error < 2e-2
            assert set(finding.gflops) == {"2048x384x1536", "2048x768x3072"}
