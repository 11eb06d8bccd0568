"""Writing a folder all or nothing: staged next to the target, synced, then renamed into place."""

from __future__ import annotations

import errno
import logging
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import sync

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def staged_folder(target: Path, *, needed: int, overwrite: bool) -> Iterator[Path]:
    """A new folder to fill; it becomes `target` at the end, or vanishes if anything fails.

    `needed` is about how many bytes will be written. A model folder that stands at `target` is
    replaced only with `overwrite`, and stays whole and in place until the new one is complete.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100 - resolve() would follow a link at target
    check_target(target, overwrite=overwrite)
    made = _make_parents(target)
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        _remove_empty(made)
        raise _no_room(target, needed, free)
    staging = _sibling(target, "new")
    try:
        staging.mkdir(mode=0o777)  # the system takes the umask off
        yield staging
        _sync_tree(staging)
        _swap_in(staging, target, overwrite=overwrite)
    except BaseException as fault:
        shutil.rmtree(staging, ignore_errors=True)
        _remove_empty(made)
        cause = fault.__cause__ if isinstance(fault, WriteError) else fault
        if not isinstance(cause, OSError):
            raise
        raise _failed(target, needed, cause) from fault


def write_file(path: Path, *chunks: bytes | memoryview) -> None:
    """A new file of these bytes, with the mode the umask gives; never replaces anything."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse a place where a folder must not be written."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise WriteError(f"{target} is not a folder; give another name")
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise WriteError(f"{target} exists already; give another name or allow to overwrite it")
    if not (target / "config.json").exists() and not (target / "modules.json").exists():
        raise WriteError(f"{target} is no model folder, so it is not replaced; give another name")
    if Path.cwd() == target or target in Path.cwd().parents:
        raise WriteError(f"{target} is the folder you stand in; change to another one first")


def make_folder(path: Path) -> None:
    """Make a folder for results and its parents, where they do not exist yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        reason = (fault.strerror or str(fault)).lower()
        raise WriteError(f"cannot make the folder {path}: {reason}; give another name") from fault


def _make_parents(target: Path) -> list[Path]:
    """Make the parents of the target; the new ones, innermost first."""
    missing = [parent for parent in target.parents if not parent.exists()]
    make_folder(target.parent)
    return missing


def _sync_tree(folder: Path) -> None:
    """Bring every file and folder to the disk, innermost first, before a rename makes them seen."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(place) / name
            mode = path.stat().st_mode
            wanted = stat.S_IMODE(mode) | (stat.S_IMODE(folder.stat().st_mode) & 0o666)
            if wanted != stat.S_IMODE(mode):  # a library wrote it 0600 whatever the umask
                path.chmod(wanted)
            sync(path)
        sync(Path(place))


def _swap_in(staging: Path, target: Path, *, overwrite: bool) -> None:
    """Rename into place; the old folder steps aside first and comes back if that fails."""
    aside: Path | None = None
    if overwrite and target.exists() and any(target.iterdir()):
        aside = _sibling(target, "old")
        target.rename(aside)
    try:
        staging.rename(target)
        try:
            sync(target.parent)
        except OSError:
            target.rename(staging)
            raise
    except OSError:
        if aside is not None:
            aside.rename(target)
        raise
    if aside is not None:
        shutil.rmtree(aside, ignore_errors=True)
        if aside.exists():
            log.warning("the old folder could not be removed and is now called %s", aside)


def _sibling(target: Path, kind: str) -> Path:
    """A name nobody can guess, on the same file system."""
    return target.parent / f".{target.name[:100]}.{kind}-{secrets.token_hex(8)}"


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:  # somebody put something there meanwhile: it stays
            return


def _failed(target: Path, needed: int, fault: OSError) -> WriteError:
    place = next(parent for parent in target.parents if parent.exists())
    free = shutil.disk_usage(place).free
    if fault.errno in _NO_ROOM:
        return _no_room(target, needed, free)
    return WriteError(
        f"{target} was not written: {(fault.strerror or str(fault)).lower()}; {needed:,} bytes "
        f"needed, {free:,} free; what stood there before is untouched"
    )


def _no_room(target: Path, needed: int, free: int) -> WriteError:
    return WriteError(
        f"no room for {target}: {needed:,} bytes needed, {free:,} free; "
        "free some space or give another disk; nothing was changed"
    )


RESULT_STAGING = ".model"


@contextmanager
def result_folder(out: Path) -> Iterator[Path]:
    """A folder to write a model into; at the end its files move into `out`.

    The config moves last: a folder without one is not yet a model.
    """
    staging = out / RESULT_STAGING
    shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed here
    yield staging
    try:
        for path in sorted(staging.iterdir(), key=lambda path: path.name == "config.json"):
            path.replace(out / path.name)
        staging.rmdir()
        sync(out)
    except OSError as fault:
        raise WriteError(f"cannot put the model into {out}: {fault.strerror or fault}") from fault
