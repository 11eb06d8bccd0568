"""The table of probes of torch: each a module with `measure(job)`, imported in a child process.

Layers above have probes of their own and pass a larger table to `hardware.report.examine`. Nothing
here imports torch, so that a child process starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Raise this when the meaning of the figures changes: every cached finding is then measured again.
PROBE_SET = 3

_HERE = "bertsmith.hardware.probes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One way to multiply matrices, the module that measures it, and its tolerance."""

    module: str  # dotted path of a module with `measure(job: ProbeJob) -> Measurement`
    about: str  # a few plain words for the table of `bertsmith doctor`
    tolerance: float  # largest difference from float64, relative to the largest value
    option: str = ""  # argument of the probe, for modules that serve several entries
    limit: float = 60.0  # seconds
    compiles: bool = False  # needs a C++ compiler; left out by --quick
    flags: tuple[str, ...] = ()  # of /proc/cpuinfo, without which the path cannot run
    edition: int = 1  # raise when this probe, or what it measures, changes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeJob:
    """The input of a probe."""

    threads: int
    option: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The output of a probe; rates are GFLOP/s by shape.

    A probe raises HardwareError where this machine does not have the path.
    """

    gflops: dict[str, float]
    fp32_gflops: dict[str, float]
    error: float
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def _linear(about: str, option: str, tolerance: float) -> Probe:
    return Probe(module=f"{_HERE}.linear", about=about, option=option, tolerance=tolerance)


PROBES: dict[str, Probe] = {
    "fp32_gemm": _linear("plain fp32 in torch", "float32", 1e-5),
    "fp32_onednn": _linear("fp32 by oneDNN", "onednn", 1e-5),
    "bf16_onednn": _linear("bf16 in torch (oneDNN)", "bfloat16", 2e-2),
    "mkl_bf16": _linear("bf16 in torch's MKL", "mkl", 2e-2),
    "threads": Probe(module=f"{_HERE}.threads", about="fp32 by threads", tolerance=1e-5),
    "accelerators": Probe(
        module=f"{_HERE}.accelerators", about="GPUs and the like", tolerance=2e-2
    ),
}
