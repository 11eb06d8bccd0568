"""This machine by the operating system: for reports and cache keys, never for a choice."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import bertsmith
from bertsmith.hardware import environment

_CPUINFO = Path("/proc/cpuinfo")
_MODEL_KEYS = ("model name", "cpu model", "hardware", "cpu")
_FLAG_KEYS = ("flags", "features", "isa")
_COMPILERS = ("c++", "g++", "clang++")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The processor, the system and the software that a finding holds for."""

    cpu: str
    flags: tuple[str, ...]
    architecture: str
    processors: int  # that this process may use
    threads: int  # that bertsmith uses
    kernel: str
    memory: int  # bytes; 0 when unknown
    torch: str
    bertsmith: str
    variables: dict[str, str]  # settings of torch's libraries that change their code path

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "flags": list(self.flags)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A C++ compiler and the first line of its `--version`."""

    path: str
    version: str


def this_machine() -> Machine:
    """The machine as the system describes it now; nothing here starts torch."""
    cpu, flags = cpu_and_flags(_read(_CPUINFO))
    return Machine(
        cpu=cpu or _other_cpu_name(),
        flags=flags,
        architecture=platform.machine(),
        processors=environment.processors(),
        threads=environment.thread_count(),
        kernel=f"{platform.system()} {platform.release()}".strip(),
        memory=_memory(),
        torch=_torch_version(),
        bertsmith=bertsmith.__version__,
        variables=environment.code_path_variables(),
    )


def cpu_and_flags(cpuinfo: str) -> tuple[str, tuple[str, ...]]:
    """The model and the sorted flags of the first processor, as far as the text names them."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        key, colon, value = line.partition(":")
        if colon and value.strip():
            fields.setdefault(key.strip().lower(), value.strip())
    model = next((fields[key] for key in _MODEL_KEYS if key in fields), "")
    detail = [fields[key] for key in ("cpu family", "model", "stepping") if key in fields]
    if model and len(detail) == 3:  # cloud machines often report only "AMD EPYC"
        model = f"{model} (family {detail[0]}, model {detail[1]}, stepping {detail[2]})"
    flags = next((fields[key].split() for key in _FLAG_KEYS if key in fields), [])
    return model, tuple(sorted(set(flags)))


def compiler_path() -> str:
    """The path of the C++ compiler by CXX or PATH, or an empty string; nothing is run."""
    chosen = environment.chosen_compiler()
    candidates = (chosen,) if chosen else _COMPILERS
    return next((path for name in candidates if (path := shutil.which(name))), "")


def compiler() -> Compiler | None:
    """The C++ compiler and its version, if there is one and it runs."""
    path = compiler_path()
    version = _first_line(path, "--version") if path else ""
    return Compiler(path=path, version=version) if version else None


def _torch_version() -> str:
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@lru_cache(maxsize=1)
def _other_cpu_name() -> str:
    """Where there is no /proc/cpuinfo, or it does not name the model (macOS, ARM, Windows)."""
    if platform.system() == "Darwin":
        name = _first_line("/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string")
        if name:
            return name
    return platform.processor() or platform.machine() or "unknown"


def _memory() -> int:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0
    return max(0, total)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = done.stdout.decode("utf-8", errors="replace").splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else ""
