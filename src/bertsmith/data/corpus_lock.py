"""One build at a time in one place: a lock that the system lets go when its holder dies."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertsmith.errors import WriteError

try:
    import fcntl
except ModuleNotFoundError:  # Windows has no such locks: there the user must take care
    fcntl = None  # type: ignore[assignment]

NAME = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a working folder, or say which process holds it."""
    path = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    with os.fdopen(descriptor, "r+") as file:
        if not _take(descriptor) or not _still_there(descriptor, path):
            raise WriteError(
                f"another build is at work in {folder} ({_holder(path)}); wait for it, stop it, "
                "or give another --out"
            )
        file.truncate(0)
        json.dump({"pid": os.getpid(), "host": socket.gethostname()}, file)
        file.flush()
        yield


def _take(descriptor: int) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _still_there(descriptor: int, path: Path) -> bool:
    """Whether the locked file is the one at `path`: a finished build takes its own away."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _holder(path: Path) -> str:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return f"process {known['pid']} on {known['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "a process that did not say its name yet"
