"""The table of probes of torch: each a module with `measure(job)`, imported in a child process.

Layers above have probes of their own and hand a larger table to `hardware.report.examine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Raise this when the meaning of the figures changes: every cached finding is then measured again.
PROBE_SET = 1

_HERE = "bertsmith.hardware.probes"
_NO_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One way to multiply matrices, where its probe lives, and how far it may be off."""

    module: str  # dotted path of a module with `measure(job)`
    about: str  # a few plain words for the table of `bertsmith doctor`
    tolerance: float  # largest difference from float64, relative to the largest value
    option: str = ""  # handed to the probe, for modules that serve several entries
    limit: float = 60.0  # seconds
    variables: Mapping[str, str] = field(default_factory=dict)  # set before torch is imported
    compiles: bool = False  # needs a C++ compiler
    slow: bool = False  # left out by --quick
    edition: int = 1  # raise when this probe, or what it measures, changes


PROBES: dict[str, Probe] = {
    "fp32_gemm": Probe(
        module=f"{_HERE}.linear", about="plain fp32 in torch", tolerance=1e-5, option="float32"
    ),
    "fp32_onednn": Probe(module=f"{_HERE}.fp32_onednn", about="fp32 by oneDNN", tolerance=1e-5),
    "bf16_onednn": Probe(
        module=f"{_HERE}.linear", about="bf16 in torch (oneDNN)", tolerance=2e-2, option="bfloat16"
    ),
    "bf16_onednn_capped": Probe(
        module=f"{_HERE}.linear",
        about="the same, without AMX",
        tolerance=2e-2,
        option="bfloat16",
        variables=_NO_AMX,
    ),
    "mkl_bf16": Probe(module=f"{_HERE}.mkl_bf16", about="bf16 in torch's MKL", tolerance=2e-2),
    "inductor_bf16": Probe(
        module=f"{_HERE}.inductor_bf16",
        about="bf16 compiled (Inductor)",
        tolerance=3e-2,
        limit=180.0,
        compiles=True,
        slow=True,
    ),
    "fp16_gemm": Probe(
        module=f"{_HERE}.linear", about="fp16 in torch", tolerance=1e-2, option="float16"
    ),
    "int8_dynamic": Probe(
        module=f"{_HERE}.int8_dynamic", about="int8 weights (FBGEMM)", tolerance=6e-2
    ),
    "int8_onednn": Probe(
        module=f"{_HERE}.int8_dynamic",
        about="int8 weights (oneDNN)",
        tolerance=6e-2,
        option="onednn",
    ),
    "int8_matmul": Probe(
        module=f"{_HERE}.int8_matmul", about="int8 times int8 (torch)", tolerance=6e-2
    ),
    "threads": Probe(module=f"{_HERE}.threads", about="fp32 by threads", tolerance=1e-5),
    "accelerators": Probe(
        module=f"{_HERE}.accelerators", about="GPUs and the like", tolerance=2e-2
    ),
}
