"""Compiles a C++ kernel for a tier, once; the library stays in the user's cache."""

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
from bertsmith.hardware.kernels.tiers import Tier
from bertsmith.hardware.machine import compiler_path

log = logging.getLogger(__name__)

_LIMIT = 180.0  # seconds
_ALWAYS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-fno-math-errno", "-w")
_SHARED = Path(__file__).parent  # vectors.h, which every kernel includes


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeKernel:
    """One library: a folder of sources, the file that is compiled, and the tier it is for."""

    name: str
    sources: Path
    main: str
    tier: Tier
    more: tuple[str, ...] = ()  # further flags

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags of the compiler but the folder of the shared sources."""
        features = (f"-m{feature}" for feature in self.tier.features)
        defines = (f"-D{name}" for name in self.tier.defines)
        return (*_ALWAYS, *features, *defines, *self.more)

    @property
    def place(self) -> Path:
        """The name of the library holds all that decides its code, so a stale one is never used."""
        seal = hashlib.sha256(repr(self.flags).encode())
        for source in (*sorted(_SHARED.iterdir()), *sorted(self.sources.iterdir())):
            if source.suffix in (".h", ".cpp"):
                seal.update(source.name.encode() + b"\0" + source.read_bytes())
        name = f"{self.name}-{self.tier.name}-{seal.hexdigest()[:16]}.so"
        return cache_dir() / "native" / name

    @property
    def is_built(self) -> bool:
        """Whether `library` would answer without compiling."""
        return self.place.exists()

    def library(self) -> Path:
        """The compiled kernel, compiled now if this machine has not done so before."""
        path = self.place
        if not path.exists():
            self._compile(path)
        _check_owner(path)
        return path

    def _compile(self, path: Path) -> None:
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
        source = str(self.sources / self.main)
        command = [compiler, *self.flags, f"-I{_SHARED}", source, "-o", name]
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
        seconds = time.monotonic() - start
        log.info("compiled the %s kernel in %.1f s into %s", path.stem, seconds, path)


def _check_owner(path: Path) -> None:
    """A library that somebody else could have written is not loaded."""
    status = path.lstat()
    writable = status.st_mode & 0o022
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or writable:
        raise HardwareError(f"{path} can be written by others; remove it and try again")
