"""A folder that takes long to make: it grows in a hidden one next to it, and appears by one rename.

A call that is killed leaves the hidden folder with its journal, and the same call resumes there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from bertsmith.errors import TargetExistsError, WriteError
from bertsmith.files.atomic_file import sync
from bertsmith.files.folder_lock import FolderLock
from bertsmith.files.resumable_file import JOURNAL, GrowingFiles


class GrowingFolder:
    """The hidden folder `path` in which `target` is made; `with` locks it for this process.

    Leaving removes it, unless its journal has something that the next call can resume from. A
    target that is `finished` already is only compared, so there is nothing to lock, unless a
    killed call left its hidden folder: then it is taken and removed.
    """

    def __init__(self, target: Path, *, manifest: str, holds: str, instead: str) -> None:
        """`manifest` is the file that tells a finished target, which `holds` ("corpus") that.

        `instead` is what else the user could give: an option or "folder".
        """
        self.target = Path(target).absolute()
        self.finished = self.target.exists()
        self._manifest = manifest
        if self.finished and not self.target.is_dir():
            raise WriteError(f"{self.target} is not a folder; give another name")
        if self.target.name in ("", "..") or (self.finished and not self._has_manifest()):
            raise TargetExistsError(f"{self.target} exists and is no {holds}; give another name")
        self.path = _hidden(self.target)
        self.journal = self.path / JOURNAL
        self._lock = FolderLock(self.path, work="build", instead=instead)
        self._locked = False

    def __enter__(self) -> Self:
        if not self.finished or self.path.exists():
            self._lock.__enter__()
            self._locked = True
            self.finished = self._has_manifest()  # by another process, before the lock was ours
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._locked:
            return
        if kind is None or not self.journal.exists():
            self._lock.remove_folder()
        self._lock.__exit__(None, None, None)

    def grow(self, key: str, starts: Mapping[str, bytes], within: str = "") -> GrowingFiles:
        """Files in it, or in the folder `within` it, that a resumed call goes on to write."""
        return GrowingFiles(self.path / within, self.journal, key, starts)

    def place(self, made: Path) -> None:
        """Rename a finished folder, whose files are on the disk, to the target."""
        try:
            sync(made)
            made.rename(self.target)
            sync(self.target.parent)
        except OSError as fault:
            reason = fault.strerror or fault
            raise WriteError(f"{self.target} was not written: {reason}") from fault

    def _has_manifest(self) -> bool:
        return (self.target / self._manifest).is_file()


def discard(target: Path) -> None:
    """Remove a folder that was only needed on the way, and what a killed call left of it.

    It loses its name first: a call that comes after a kill finds all of it or none.
    """
    hidden = _hidden(target)
    shutil.rmtree(hidden, ignore_errors=True)
    try:
        target.rename(hidden)
    except OSError:  # there is none
        return
    shutil.rmtree(hidden, ignore_errors=True)


def _hidden(target: Path) -> Path:
    """Where a folder grows."""
    return target.parent / f".{target.name}.building"
