"""Compiles the kernel for an instruction set, once; the library stays in the user's cache."""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import HardwareError
from bertsmith.hardware.environment import cache_dir
from bertsmith.hardware.machine import compiler_path

log = logging.getLogger(__name__)

_SOURCES = Path(__file__).parent / "kernel"
_AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512bf16", "fma")
_LIMIT = 180.0  # seconds


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


def library(tier: str) -> Path:
    """The compiled kernel of a tier, compiled now if this machine has not done so before."""
    path = _place(tier)
    if not path.exists():
        _compile(tier, path)
    _check_owner(path)
    return path


def is_built(tier: str) -> bool:
    """Whether `library` would answer without compiling."""
    return _place(tier).exists()


def _place(tier: str) -> Path:
    """The name of the library holds all that decides its code, so a stale one is never used."""
    seal = hashlib.sha256(repr(_flags(tier)).encode())
    for source in sorted(_SOURCES.iterdir()):
        if source.suffix in (".h", ".cpp"):
            seal.update(source.name.encode() + b"\0" + source.read_bytes())
    return cache_dir() / "native" / f"encoder-{tier}-{seal.hexdigest()[:16]}.so"


def _flags(tier: str) -> tuple[str, ...]:
    return (
        *("-O3", "-std=c++17", "-shared", "-fPIC", "-fno-math-errno", "-w"),
        *(f"-m{feature}" for feature in _AVX512),
        *(f"-D{name}" for name in TIERS[tier].defines),
    )


def _compile(tier: str, path: Path) -> None:
    if platform.machine().lower() not in ("x86_64", "amd64") or os.name != "posix":
        raise HardwareError("the native kernel is written for x86-64 on Linux or macOS")
    compiler = compiler_path()
    if not compiler:
        raise HardwareError("no C++ compiler was found; install g++ or clang++, or set CXX")
    start = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".so")
    os.close(handle)
    temporary = Path(name)
    command = [compiler, *_flags(tier), str(_SOURCES / "encoder.cpp"), "-o", name]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False)
        if ended.returncode != 0:
            lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()[:3]
            raise HardwareError(f"the kernel does not compile here: {' '.join(lines)[:300]}")
        temporary.chmod(0o700)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except subprocess.TimeoutExpired as error:
        raise HardwareError(f"compiling the kernel took more than {_LIMIT:.0f} s") from error
    except OSError as error:
        raise HardwareError(f"the kernel cannot be compiled: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
    log.info("compiled the %s kernel in %.1f s into %s", tier, time.monotonic() - start, path)


def _check_owner(path: Path) -> None:
    """A library that somebody else could have written is not loaded."""
    status = path.lstat()
    writable = status.st_mode & 0o022
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or writable:
        raise HardwareError(f"{path} can be written by others; remove it and try again")
