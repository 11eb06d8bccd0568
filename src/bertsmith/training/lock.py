"""One run a folder: a lock that the system drops when its holder dies, naming the holder."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bertsmith.errors import BertsmithError, WriteError

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)


class LockedError(BertsmithError):
    """A run folder that another living process trains in."""

    exit_code = 73  # EX_CANTCREAT


class RunLock:
    """Holds a run folder; `with` takes it and gives it back.

    The file stays: removing it would let two processes lock two files of the same name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / "lock"
        self._descriptor = -1

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
            self._descriptor = os.open(self._path, flags, 0o666)
        except OSError as fault:
            raise WriteError(
                f"cannot lock {self._folder}: {(fault.strerror or str(fault)).lower()}"
            ) from fault
        try:
            self._take()
        except BaseException:
            os.close(self._descriptor)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            os.ftruncate(self._descriptor, 0)
        except OSError as fault:
            log.info("the lock %s could not be emptied: %s", self._path, fault)
        os.close(self._descriptor)

    def _take(self) -> None:
        before = os.pread(self._descriptor, 4096, 0).decode("utf-8", errors="replace").strip()
        if fcntl is None:
            log.warning("this system has no file locks: start only one run in %s", self._folder)
        else:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as fault:
                raise LockedError(
                    f"{self._folder} is in use by another run ({before or 'unknown holder'}); "
                    "wait for it, stop it, or give another folder"
                ) from fault
            except OSError as fault:
                raise WriteError(
                    f"cannot lock {self._path}: {(fault.strerror or str(fault)).lower()}; "
                    "choose a folder on a file system that has locks"
                ) from fault
        if before:
            log.info("the lock of a run that ended without notice (%s) is taken over", before)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": int(time.time())}
        text = json.dumps(holder).encode()
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text, 0)
        except OSError as fault:
            raise WriteError(
                f"cannot write {self._path}: {(fault.strerror or str(fault)).lower()}"
            ) from fault
