"""A bf16 encoder in C++ with float32 sums: compiled once per machine, probed before it is used."""

from __future__ import annotations

from bertsmith.hardware.probes import PROBES, Probe

_MODULE = f"{__name__}.probe"

NATIVE_PROBES: dict[str, Probe] = {
    "native_amx": Probe(
        module=_MODULE,
        about="own kernel, bf16 on AMX",
        tolerance=2e-2,
        option="amx",
        limit=180.0,
        compiles=True,
    ),
    "native_avx512": Probe(
        module=_MODULE,
        about="own kernel, bf16 on AVX-512",
        tolerance=2e-2,
        option="avx512",
        limit=180.0,
        compiles=True,
    ),
}
ALL_PROBES: dict[str, Probe] = {**PROBES, **NATIVE_PROBES}
