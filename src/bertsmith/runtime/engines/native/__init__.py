"""A bf16 encoder in C++ with float32 sums: compiled once per machine, probed before it is used."""

from __future__ import annotations

from bertsmith.hardware.probes import PROBES, Probe

_MODULE = f"{__name__}.probe"
# What the kernel is compiled for (build.py), by the names of /proc/cpuinfo.
_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_bf16", "fma")

NATIVE_PROBES: dict[str, Probe] = {
    "native_amx": Probe(
        module=_MODULE,
        about="own kernel, bf16 on AMX",
        tolerance=2e-2,
        option="amx",
        flags=(*_AVX512, "amx_tile", "amx_bf16"),
        limit=180.0,
        compiles=True,
    ),
    "native_avx512": Probe(
        module=_MODULE,
        about="own kernel, bf16 on AVX-512",
        tolerance=2e-2,
        option="avx512",
        flags=_AVX512,
        limit=180.0,
        compiles=True,
    ),
}
ALL_PROBES: dict[str, Probe] = {**PROBES, **NATIVE_PROBES}
