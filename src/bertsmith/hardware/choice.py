"""Chooses the path for matrix products from the findings of the probes, never from CPU flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bertsmith.hardware.findings import Finding
from bertsmith.hardware.report import MachineReport

PLAIN = "fp32_gemm"
# Probe -> path of the products in training; encoding chooses among engines (runtime).
TRAINING_FP32 = {PLAIN: "fp32", "fp32_onednn": "onednn-fp32"}  # exact: no operand is rounded
TRAINING = TRAINING_FP32 | {"mkl_bf16": "mkl-bf16", "bf16_onednn": "torch-bf16"}

LARGEST_ERROR = 1e-2  # bf16 is near 4e-3
SMALLEST_GAIN = 1.15  # below this a second number format is not worth its rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChoice:
    """The engine to use, the reason, the second best, and the reason against each other path."""

    path: str
    probe: str
    reason: str
    speedup: float = 1.0
    runner_up: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


def choose_path(report: MachineReport, paths: Mapping[str, str]) -> PathChoice:
    """The fastest of `paths` (probe -> engine) that is exact enough, else plain fp32."""
    refused: dict[str, str] = {}
    fit: list[tuple[float, Finding]] = []
    for finding in report.findings:
        if finding.name == PLAIN or finding.name not in paths:
            continue
        why_not = _why_not(finding)
        if why_not:
            refused[finding.name] = why_not
        else:
            fit.append((finding.speedup or 0.0, finding))
    fit.sort(key=lambda entry: entry[0], reverse=True)
    if not fit:
        return PathChoice(
            path=paths[PLAIN],
            probe=PLAIN,
            reason="no faster path is exact enough",
            refused=refused,
        )
    speedup, best = fit[0]
    for other, finding in fit[1:]:
        refused[finding.name] = f"works at {other:.1f} x fp32, {best.name} is faster"
    return PathChoice(
        path=paths[best.name],
        probe=best.name,
        reason=f"measured at {speedup:.1f} x fp32, error {best.error:.1e}",
        speedup=speedup,
        runner_up=paths[fit[1][1].name] if len(fit) > 1 else paths[PLAIN],
        refused=refused,
    )


def is_right(finding: Finding | None) -> bool:
    """Whether a path works and is exact enough, faster or not: for an explicit request."""
    if finding is None or not finding.works or finding.error is None:
        return False
    return finding.error <= LARGEST_ERROR


def _why_not(finding: Finding) -> str:
    """The reason against a path; empty if it can be chosen."""
    if not finding.works:
        return f"{finding.status}: {finding.detail}" if finding.detail else finding.status
    speedup = finding.speedup
    if speedup is None or finding.error is None:
        return "was not timed"
    if not is_right(finding):
        return f"too coarse: error {finding.error:.1e}, at most {LARGEST_ERROR:g}"
    if speedup < SMALLEST_GAIN:
        return f"not faster: {speedup:.2f} x fp32"
    return ""
