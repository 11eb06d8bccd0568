"""One worker a folder: a lock that the system drops when its holder dies, naming the holder."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import socket
import time
from pathlib import Path
from typing import Self

from bertsmith.errors import LockedError, WriteError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

NAME = "lock"
TRIES = 10  # a folder that others keep taking away from under us is in use


class FolderLock:
    """Holds a folder for one process; `with` takes it and gives it back.

    `work` is what the caller does there ("run", "build"), `instead` what else the user could give.
    The file stays: removing it would let two processes lock two files of the same name. Only
    `remove_folder` takes it away, together with all it guards.
    """

    def __init__(self, folder: Path, *, work: str, instead: str) -> None:
        self._folder = folder
        self._path = folder / NAME
        self._work = work
        self._instead = instead
        self._descriptor = -1

    def __enter__(self) -> Self:
        for _ in range(TRIES):
            self._descriptor = self._open()
            try:
                before = self._read()
                self._take(before)
                if self._still_there():
                    self._sign(before)
                    return self
            except BaseException:
                os.close(self._descriptor)
                raise
            os.close(self._descriptor)  # its holder ended and took the folder away: once more
        raise self._held("")

    def __exit__(self, *_: object) -> None:
        try:
            os.ftruncate(self._descriptor, 0)
        except OSError as fault:
            log.info("the lock %s could not be emptied: %s", self._path, fault)
        os.close(self._descriptor)

    def remove_folder(self) -> None:
        """Remove the folder as far as possible, the lock last: nobody enters a half-removed one."""
        with contextlib.suppress(OSError):  # what cannot be removed must not hide another error
            for entry in list(self._folder.iterdir()):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                elif entry.name != NAME:
                    entry.unlink(missing_ok=True)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        for _ in range(TRIES):
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                return os.open(self._path, flags, 0o666)
            except FileNotFoundError:  # the folder went between the two lines
                continue
            except OSError as fault:
                raise self._failed("lock", self._folder, fault) from fault
        raise self._held("")

    def _read(self) -> str:
        return os.pread(self._descriptor, 4096, 0).decode("utf-8", errors="replace").strip()

    def _take(self, before: str) -> None:
        if fcntl is None:
            log.warning(
                "this system has no file locks: start only one %s in %s", self._work, self._folder
            )
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            raise self._held(before) from fault
        except OSError as fault:
            raise self._failed(
                "lock", self._path, fault, " on a file system that has locks"
            ) from fault

    def _still_there(self) -> bool:
        """Whether the locked file is the one at its path: its last holder may have removed it."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), self._path.stat())
        except OSError:
            return False

    def _sign(self, before: str) -> None:
        if before:
            log.info(
                "the lock of a %s that ended without notice (%s) is taken over",
                self._work,
                _holder(before),
            )
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(holder).encode(), 0)
        except OSError as fault:
            raise self._failed("write", self._path, fault) from fault

    def _held(self, text: str) -> LockedError:
        return LockedError(
            f"another {self._work} is at work in {self._folder} ({_holder(text)}); "
            f"wait for it, stop it, or give another {self._instead}"
        )

    def _failed(self, what: str, path: Path, fault: OSError, where: str = "") -> WriteError:
        reason = (fault.strerror or str(fault)).lower()
        return WriteError(f"cannot {what} {path}: {reason}; give another {self._instead}{where}")


def _holder(text: str) -> str:
    """Who a lock file names."""
    try:
        known = json.loads(text)
        return f"process {known['pid']} on {known['host']}"
    except (ValueError, KeyError, TypeError):
        return "a process that did not say its name yet"
