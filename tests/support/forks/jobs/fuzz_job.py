"""A command line in odd surroundings, in a process of its own that may take some seconds.

An order has arguments, cwd, seconds, and the surroundings: stdin (empty, closed, text), stdout
(file, closed, full, broken), stderr (file, closed), encoding of the streams, environment (name to
value, null removes it), file_limit (most bytes of a file), mounts (folder to options of a tmpfs).
The report has `ended`: code, seconds, late (the time limit was reached), stderr.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import io
import os
import resource
import select
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from disk_points import Points
from whole_package import import_everything as prepare  # noqa: F401 - called by the server

from bertsmith.cli.app import main as run_command

MEMORY = 3 << 30  # bytes
GRACE = 15  # seconds between SIGTERM and SIGKILL
LONGEST = 1 << 20  # bytes of standard error that are read
NEW_NAMESPACE, PRIVATE, CAPSET = 0x20000, 1 << 18 | 1 << 14, 126
DAC_OVERRIDE, DAC_READ_SEARCH = 1, 2


def run(order: dict[str, Any], points: Points) -> dict[str, Any]:
    heard, errors = os.pipe()  # a file would count for `file_limit`
    fcntl.fcntl(errors, fcntl.F_SETPIPE_SZ, LONGEST)
    ended = _run(order, errors)
    os.close(errors)
    os.set_blocking(heard, False)
    ended["stderr"] = os.read(heard, LONGEST).decode("utf-8", "surrogateescape")
    return {"ended": ended}


def _run(job: dict[str, Any], errors: int) -> dict[str, Any]:
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(job, errors)
    ended = os.pidfd_open(child)
    late = not select.select([ended], [], [], job["seconds"])[0]
    if late:
        os.kill(child, signal.SIGTERM)
        if not select.select([ended], [], [], GRACE)[0]:
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # workers that outlived it
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "seconds": time.monotonic() - start, "late": late}


def _child(job: dict[str, Any], errors: int) -> NoReturn:
    code = 99
    try:
        _surround(job, errors)
        sys.argv = ["bertsmith", *job["arguments"]]
        try:
            run_command(job["arguments"])
        except SystemExit as end:
            code = int(end.code or 0)
        code = _flush() or code
    except BaseException as fault:
        os.write(errors, f"escaped: {type(fault).__name__}: {fault!r}".encode())
    finally:
        os._exit(code)


def _flush() -> int:
    """What the interpreter does at its end: 120 if standard output cannot take the rest."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        return 120
    return 0


def _surround(job: dict[str, Any], errors: int) -> None:
    os.setsid()
    for name, value in job["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    os.chdir(job["cwd"])
    _mount(job["mounts"])
    _give_up_root()
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job["file_limit"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_limit"], job["file_limit"]))
    _connect(job, errors)


def _connect(job: dict[str, Any], errors: int) -> None:
    """The three streams as the interpreter would make them: None for one that is closed."""
    given, encoding = os.open(os.devnull, os.O_RDONLY), job["encoding"]
    if job["stdin"] == "text":
        given, far = os.pipe()
        os.write(far, b"the bird and the tree\n")
        os.close(far)
    os.dup2(given, 0)
    os.dup2(_output(job["stdout"]), 1)
    os.dup2(errors, 2)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False), encoding=encoding)  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding=encoding)  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False),  # noqa: SIM115
        encoding=encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if job[name] == "closed":
            os.close(number)
            setattr(sys, name, None)


def _output(kind: str) -> int:
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "broken":
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return os.open(os.devnull, os.O_WRONLY)


def _mount(mounts: dict[str, str]) -> None:
    """Small or read-only disks that only this process sees; only root can."""
    library = ctypes.CDLL(None, use_errno=True)
    if mounts and (
        library.unshare(NEW_NAMESPACE) or library.mount(None, b"/", None, PRIVATE, None)
    ):
        raise OSError(ctypes.get_errno(), "no mounts")
    for folder, options in mounts.items():
        if library.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "no mount", folder)


def _give_up_root() -> None:
    """Without the right to read and write everything, root meets permissions as others do."""
    if os.geteuid() != 0:
        return
    library = ctypes.CDLL(None, use_errno=True)
    lines = Path("/proc/self/status").read_text().splitlines()
    held = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff"))
    held &= ~(1 << DAC_OVERRIDE | 1 << DAC_READ_SEARCH)
    words = held & 0xFFFFFFFF, held >> 32
    header = struct.pack("<Ii", 0x20080522, 0)
    data = struct.pack("<6I", words[0], words[0], 0, words[1], words[1], 0)
    if library.syscall(CAPSET, header, data):
        raise OSError(ctypes.get_errno(), "capset")
