"""The tiers of the C++ kernels: an instruction set with a number format, in one table.

A kernel is written once, by vector width (vectors.h) and number format; a tier says what it is
compiled for. Whether a machine has a tier is for its probe to find out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bertsmith.hardware.probes import Probe

Numbers = Literal["fp32", "bf16"]

_COMPILING = 180.0  # seconds for a probe that compiles first, on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """An instruction set and the number format of the operands; sums are always float32."""

    name: str
    about: str
    numbers: Numbers
    lanes: int  # floats of a vector
    features: tuple[str, ...]  # as the compiler's -m names them
    flags: tuple[str, ...]  # the same, and what the compiler need not know, by /proc/cpuinfo
    defines: tuple[str, ...] = ()  # of the preprocessor

    def probe(self, module: str, *, about: str, tolerance: float) -> Probe:
        """The probe of a kernel on this tier: `module` compiles it in a child process."""
        return Probe(
            module=module,
            about=about,
            tolerance=tolerance,
            option=self.name,
            flags=self.flags,
            limit=_COMPILING,
            compiles=True,
        )


_AVX2 = ("avx2", "fma")
_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "fma")
_BF16_FEATURES, _BF16_FLAGS = (*_AVX512, "avx512bf16"), (*_AVX512, "avx512_bf16")
_AMX = (*_BF16_FLAGS, "amx_tile", "amx_bf16")  # its instructions are written as assembly

TIERS: dict[str, Tier] = {
    tier.name: tier
    for tier in (
        Tier(
            name="amx-bf16",
            about="bf16 on AMX tiles",
            numbers="bf16",
            lanes=16,
            features=_BF16_FEATURES,
            flags=_AMX,
            defines=("BERTSMITH_BF16", "BERTSMITH_AMX"),
        ),
        Tier(
            name="avx512-bf16",
            about="bf16 by AVX-512 dot products",
            numbers="bf16",
            lanes=16,
            features=_BF16_FEATURES,
            flags=_BF16_FLAGS,
            defines=("BERTSMITH_BF16",),
        ),
        Tier(
            name="avx512-fp32",
            about="fp32 on AVX-512",
            numbers="fp32",
            lanes=16,
            features=_AVX512,
            flags=_AVX512,
        ),
        Tier(
            name="avx2-fp32",
            about="fp32 on AVX2",
            numbers="fp32",
            lanes=8,
            features=_AVX2,
            flags=_AVX2,
        ),
        # The tile code on plain loops: right on any AVX-512 machine, far too slow for use.
        Tier(
            name="amx-bf16-emulated",
            about="AMX in slow motion, for tests",
            numbers="bf16",
            lanes=16,
            features=_BF16_FEATURES,
            flags=_BF16_FLAGS,
            defines=("BERTSMITH_BF16", "BERTSMITH_AMX", "BERTSMITH_EMULATE_TILES"),
        ),
    )
}
