"""A file that appears whole or not at all: written next to its target, synced, then renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NoReturn, Self, TypeVar

from bertsmith.errors import WriteError

T = TypeVar("T")
# A file without a name cannot be left behind, whatever ends the process (Linux).
_UNNAMED = getattr(os, "O_TMPFILE", 0)


class StagedFile:
    """A binary file in the making; `with` commits it at the end or drops it on any exception."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # behind a link, the file itself is what gets replaced
        check_file_target(self.path)
        self._staged: Path | None = None
        self._written = 0
        try:
            self.stream = self._open()
        except OSError as error:
            self._fail(error)
        hold(self.stream.fileno())

    def write(self, block: bytes | memoryview) -> None:
        """Append bytes."""
        try:
            self._written += len(block)
            self.stream.write(block)
        except OSError as error:
            self._fail(error)

    def rewrite_start(self, block: bytes) -> None:
        """Replace the first bytes, whose content is only known at the end."""
        try:
            self.stream.seek(0)
            self.stream.write(block)
        except OSError as error:
            self._fail(error)

    def commit(self) -> None:
        """Put the file in place: bytes on disk first, then the name, then the folder's entry."""
        try:
            self.stream.flush()
            os.fsync(self.stream.fileno())
            staged = self._named()
            staged.replace(self.path)
            self._staged = None
            sync(self.path.parent)
        except OSError as error:
            self._fail(error)
        finally:
            self.drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.drop()

    def _open(self) -> BinaryIO:
        if _UNNAMED:
            # Not every file system has unnamed files; those that lack them say so here.
            with contextlib.suppress(OSError):
                return os.fdopen(os.open(self.path.parent, _UNNAMED | os.O_RDWR, 0o666), "w+b")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        descriptor, self._staged = claim(
            self.path, "staged", lambda name: os.open(name, flags, 0o666)
        )
        return os.fdopen(descriptor, "w+b")

    def _named(self) -> Path:
        """The staged file's name; an unnamed file gets one at this last moment."""
        if self._staged is None:
            # A directory descriptor makes Python call linkat with AT_SYMLINK_FOLLOW.
            anchor = os.open("/", os.O_RDONLY)
            own = f"/proc/self/fd/{self.stream.fileno()}"
            try:
                _, self._staged = claim(
                    self.path, "staged", lambda name: os.link(own, name, src_dir_fd=anchor)
                )
            finally:
                os.close(anchor)
        return self._staged

    def drop(self) -> None:
        """Forget the file; whatever stood at its path stays."""
        with contextlib.suppress(OSError):  # a full disk must not hide the first error
            self.stream.close()
        if self._staged is not None:
            self._staged.unlink(missing_ok=True)
            self._staged = None

    def _fail(self, error: OSError) -> NoReturn:
        reason = error.strerror or str(error)
        message = f"cannot write {self.path}: {reason}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            free = shutil.disk_usage(self.path.parent).free
            message += (
                f"; it needs at least {self._written:,} bytes, "
                f"{free:,} are free in {self.path.parent}"
            )
        rest = "; the file that stood there before is untouched" if self.path.exists() else ""
        raise WriteError(message + rest) from error


def check_file_target(path: Path) -> None:
    """Refuse a place where a file cannot be put."""
    if path.exists() and not path.is_file():
        raise WriteError(f"{path} is not a regular file and cannot be replaced by a new one")
    if not path.parent.is_dir():
        raise WriteError(f"cannot write {path}: there is no folder {path.parent}")


def write_staged(path: Path, content: bytes) -> None:
    """Put a file with this content at `path`, whole or not at all."""
    with StagedFile(path) as file:
        file.write(content)


def claim(target: Path, kind: str, make: Callable[[Path], T]) -> tuple[T, Path]:
    """Call `make` with a free hidden name next to the target; its result and the name.

    The name is the same every time, so that what a killed process left there is removed by the
    next one; only while a living process holds it, the name is one that nobody can guess.
    """
    usual = target.parent / f".{target.name[:100]}.{kind}"
    if _is_abandoned(usual):
        if usual.is_dir():
            shutil.rmtree(usual, ignore_errors=True)
        else:
            usual.unlink(missing_ok=True)
    try:
        return make(usual), usual
    except FileExistsError:
        other = usual.with_name(f"{usual.name}-{secrets.token_hex(8)}")
        return make(other), other


def hold(descriptor: int) -> None:
    """Mark an open file or folder as in use by this process, until it is closed."""
    with contextlib.suppress(OSError):  # without locks, names are not used twice
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_abandoned(path: Path) -> bool:
    """Whether a file or folder is there that no living process holds."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """Bring a file, or the entries of a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
