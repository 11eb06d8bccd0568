"""Facts about the machine and the libraries, to stand beside every figure."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

LIBRARIES = (
    "bertsmith",
    "torch",
    "numpy",
    "tokenizers",
    "sentence-transformers",
    "transformers",
    "onnxruntime",
    "ctranslate2",
)


def machine_facts(threads: int) -> dict[str, object]:
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "threads": threads,
        "load_at_start": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
    }


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "unknown"
    )


def version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
