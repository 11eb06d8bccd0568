"""The only reader of pickles, a program of its own: `python -I pickle_child.py OUT MEMORY CPU`.

It reads the pickle from standard input with torch's restricted unpickler (`weights_only=True`),
under limits of memory, time and file size. It refuses to start programs or to open connections
even if that reader were fooled, and writes plain tensors to OUT as safetensors. Its answer is one
line of JSON. It imports nothing of bertsmith, so it runs isolated from the caller's paths.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from typing import Any, BinaryIO

FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "pickle.find_class",
    "pty.spawn",
    "socket.bind",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "ctypes.dlopen",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "shutil.rmtree",
    "webbrowser.open",
)
NESTED = ("state_dict", "model_state_dict", "model", "module")


class RefusedError(Exception):
    """A file that is not what a state dict may be."""


def main(arguments: list[str]) -> int:
    """Convert standard input and print one line of JSON: {"tensors": n} or {"error": text}."""
    out, memory, seconds = arguments[0], int(arguments[1]), int(arguments[2])
    confine(memory, seconds)
    answer = answer_for(sys.stdin.buffer, out)
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0 if "tensors" in answer else 1


def confine(memory: int, seconds: int) -> None:
    """Bound this process and forbid what data never does; torch is imported before the limits."""
    import safetensors.torch  # noqa: F401
    import torch  # noqa: F401

    _limit(memory, seconds)
    sys.addaudithook(_forbid)


def answer_for(file: BinaryIO, out: str) -> dict[str, Any]:
    """Convert an open pickle to the safetensors file `out`; never raises for what is in it."""
    try:
        return {"tensors": _convert(file, out)}
    except RefusedError as fault:
        return {"error": str(fault)}
    except MemoryError:
        return {"error": "needs more memory than a file of its size may"}
    except Exception as fault:  # the file is hostile by assumption: any fault is a refusal
        if type(fault).__name__ == "UnpicklingError":  # by name: no source file imports pickle
            return {"error": _why_refused(str(fault))}
        lines = (str(fault).strip() or type(fault).__name__).splitlines()
        return {"error": f"{type(fault).__name__}: {lines[0][:300]}"}


def _why_refused(message: str) -> str:
    """The name of what the pickle wanted to load; torch's text advises to load it unchecked."""
    name = re.search(r"GLOBAL ([\w.]{1,200})", message)
    if name is None:
        return "torch's restricted reader refuses it: it is damaged or holds more than tensors"
    return f"it would load {name[1]}, which is code or an object, and no tensor"


def _convert(file: BinaryIO, out: str) -> int:
    import safetensors.torch
    import torch

    _check_archive(file)
    file.seek(0)
    loaded = torch.load(file, map_location="cpu", weights_only=True)
    tensors = {name: _plain(name, value, torch) for name, value in _state(loaded).items()}
    safetensors.torch.save_file(tensors, out, metadata={"format": "pt"})
    return len(tensors)


def _state(loaded: Any) -> dict[str, Any]:
    """The map of names to tensors, or the one inside a training checkpoint."""
    for _ in range(2):
        if not isinstance(loaded, dict):
            break
        inner = next((key for key in NESTED if isinstance(loaded.get(key), dict)), None)
        if inner is None:
            break
        loaded = loaded[inner]
    if not isinstance(loaded, dict) or not loaded:
        raise RefusedError(f"holds a {type(loaded).__name__}, not a map of names to tensors")
    strange = [key for key in loaded if not isinstance(key, str) or not key.isprintable()]
    if strange:
        raise RefusedError(f"holds the key {ascii(strange[0])[:80]}, which is not a tensor name")
    return dict(loaded)


def _plain(name: str, value: Any, torch: Any) -> Any:
    if not isinstance(value, torch.Tensor) or type(value) not in (
        torch.Tensor,
        torch.nn.Parameter,
    ):
        raise RefusedError(f"{name} is a {type(value).__name__}, not a tensor")
    if value.layout is not torch.strided or value.is_quantized or value.device.type != "cpu":
        raise RefusedError(f"{name} is not a plain dense tensor")
    return value.detach().clone(memory_format=torch.contiguous_format)


def _check_archive(file: BinaryIO) -> None:
    """A zip archive may not be compressed: torch never compresses, a bomb does."""
    if not zipfile.is_zipfile(file):
        return
    with zipfile.ZipFile(file) as archive:
        packed = [item for item in archive.infolist() if item.compress_type != zipfile.ZIP_STORED]
        total = sum(item.file_size for item in archive.infolist())
    if packed or total > os.fstat(file.fileno()).st_size:
        raise RefusedError("is a compressed archive, which torch never writes")


def _limit(memory: int, seconds: int) -> None:
    """Bound what this process may use from here on; torch is imported already."""
    try:
        import resource
    except ImportError:  # not on Windows; the parent's time limit still holds
        return
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_FSIZE: memory,
        resource.RLIMIT_CORE: 0,
    }
    if os.path.exists("/proc/self/statm"):  # noqa: PTH110 - elsewhere nobody tells what is mapped
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123
            mapped = int(statm.read().split()[0]) * resource.getpagesize()
        limits[resource.RLIMIT_AS] = mapped + memory
    for kind, value in limits.items():
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _forbid(event: str, _: tuple[Any, ...]) -> None:
    if event in FORBIDDEN:
        raise RefusedError(f"tried to do something that data never does ({event})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
