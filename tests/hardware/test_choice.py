"""The choice: fastest among the right, exact enough and worth it; plain fp32 otherwise."""

import pytest

from bertsmith.hardware.choice import TRAINING, PathChoice, choose_path
from bertsmith.hardware.findings import Finding
from bertsmith.hardware.machine import this_machine
from bertsmith.hardware.report import MachineReport
from bertsmith.runtime.engines.kinds import engine_paths

SHAPE = "2048x384x1536"


def found(name: str, speedup: float = 1.0, error: float = 4e-3, status: str = "works") -> Finding:
    ran = status in ("works", "wrong numbers")
    return Finding(
        name=name,
        status=status,
        gflops={SHAPE: 100 * speedup} if ran else {},
        fp32_gflops={SHAPE: 100.0} if ran else {},
        error=error if ran else None,
    )


AVX512, AMX = "native_avx512_bf16", "native_amx_bf16"


def report(*findings: Finding) -> MachineReport:
    return MachineReport(
        machine=this_machine(),
        compiler=None,
        load=0.0,
        findings=(found("fp32_gemm", error=4e-7), *findings),
    )


def choices(*findings: Finding) -> tuple[PathChoice, PathChoice]:
    whole = report(*findings)
    return choose_path(whole, engine_paths()), choose_path(whole, TRAINING)


@pytest.mark.parametrize(
    ("findings", "inference", "training"),
    [
        ([], "eager-fp32", "fp32"),
        (
            [found(AVX512, 5.0), found("bf16_onednn", 2.3)],
            "native-avx512-bf16",
            "torch-bf16",
        ),
        (
            [found(AVX512, 2.0), found(AMX, 9.0)],
            "native-amx-bf16",
            "fp32",
        ),
        ([found(AVX512, 1.1)], "eager-fp32", "fp32"),
        ([found(AVX512, 9.0, error=0.02)], "eager-fp32", "fp32"),
        ([found(AVX512, 9.0, status="wrong numbers")], "eager-fp32", "fp32"),
        ([found(AVX512, status="not finished in time")], "eager-fp32", "fp32"),
        ([found(AVX512, status="absent")], "eager-fp32", "fp32"),
        (
            [found("bf16_onednn", status="crashed SIGILL"), found("mkl_bf16", 4.5)],
            "eager-fp32",
            "mkl-bf16",
        ),
        ([found("bf16_onednn", 2.3), found("mkl_bf16", 0.9)], "eager-fp32", "torch-bf16"),
        ([found("threads", 2.0), found("accelerators", 50.0)], "eager-fp32", "fp32"),
    ],
)
def test_the_fastest_right_path_is_chosen(
    findings: list[Finding], inference: str, training: str
) -> None:
    assert [choice.path for choice in choices(*findings)] == [inference, training]


def test_a_choice_tells_the_runner_up_and_every_refusal() -> None:
    paths = TRAINING | {"coarse": "a", "crashing": "b", "slow": "c"}
    findings = report(
        found("bf16_onednn", 2.5),
        found("mkl_bf16", 1.5),
        found("coarse", 3.0, error=0.023),
        found("crashing", status="crashed SIGILL"),
        found("slow", 0.2),
        found(AVX512, 9.0),
        found("threads", 2.0),
    )
    choice = choose_path(findings, paths)
    assert set(choice.refused) == {"mkl_bf16", "coarse", "crashing", "slow"}
    assert (choice.path, choice.runner_up, choice.probe) == (
        "torch-bf16",
        "mkl-bf16",
        "bf16_onednn",
    )
    assert choice.speedup == pytest.approx(2.5)
    assert "2.5 x fp32" in choice.reason
    assert "bf16_onednn is faster" in choice.refused["mkl_bf16"]
    assert "too coarse" in choice.refused["coarse"]
    assert choice.refused["crashing"] == "crashed SIGILL"
    assert "0.20 x fp32" in choice.refused["slow"]


def test_without_any_finding_plain_fp32_is_chosen() -> None:
    empty = MachineReport(machine=this_machine(), compiler=None, load=0.0, findings=())
    assert choose_path(empty, engine_paths()).path == "eager-fp32"


def test_a_table_of_ones_own_decides_which_engines_there_are() -> None:
    mine = {"fp32_gemm": "slow", "my_kernel": "fast"}
    assert choose_path(report(found("my_kernel", 3.0)), mine).path == "fast"
