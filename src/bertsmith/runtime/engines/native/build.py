"""The encoder's kernel by instruction set, compiled once per machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertsmith.hardware.native_kernel import NativeKernel

_SOURCES = Path(__file__).parent / "kernel"
_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512bf16", "fma")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """An instruction set the kernel is written for; whether a machine has it is for the probe."""

    about: str
    defines: tuple[str, ...] = ()


TIERS: dict[str, Tier] = {
    "amx": Tier(about="bf16 on AMX tiles", defines=("BERTSMITH_AMX",)),
    "avx512": Tier(about="bf16 by AVX-512 dot products"),
    # The tile code on plain loops: right on any AVX-512 machine, far too slow for use.
    "amx-emulated": Tier(
        about="AMX in slow motion, for tests",
        defines=("BERTSMITH_AMX", "BERTSMITH_EMULATE_TILES"),
    ),
}


def encoder_kernel(tier: str) -> NativeKernel:
    """The kernel of a tier, compiled or not."""
    return NativeKernel(
        name=f"encoder-{tier}",
        sources=_SOURCES,
        main="encoder.cpp",
        features=_AVX512,
        more=tuple(f"-D{name}" for name in TIERS[tier].defines),
    )


def library(tier: str) -> Path:
    """The compiled kernel of a tier, compiled now if this machine has not done so before."""
    return encoder_kernel(tier).library()


def is_built(tier: str) -> bool:
    """Whether `library` would answer without compiling."""
    return encoder_kernel(tier).is_built
