"""Writing a folder all or nothing: staged next to the target, synced, then renamed into place."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from bertsmith.errors import TargetExistsError, WriteError
from bertsmith.files.atomic_file import claim, hold, sync

log = logging.getLogger(__name__)

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def staged_folder(
    target: Path, *, needed: int, overwrite: bool, only: Collection[str] | None = None
) -> Iterator[Path]:
    """A new folder to fill; it becomes `target` at the end, or vanishes if anything fails.

    `needed` is about how many bytes will be written. A folder that stands at `target` is replaced
    only with `overwrite`, and stays whole and in place until the new one is complete; `only` names
    the files that it may hold, by default it must be a model folder.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100 - resolve() would follow a link at target
    check_target(target, overwrite=overwrite, only=only)
    made = _make_parents(target)
    free = shutil.disk_usage(target.parent).free
    if needed > free:
        _remove_empty(made)
        raise _no_room(target, needed, free)
    staging: Path | None = None
    try:
        _, staging = claim(target, "new", lambda path: path.mkdir(mode=0o777))  # less the umask
        with _held(staging):
            yield staging
            _sync_tree(staging)
            _swap_in(staging, target)
    except BaseException as fault:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
        _remove_empty(made)
        cause = fault.__cause__ if isinstance(fault, WriteError) else fault
        if not isinstance(cause, OSError):
            raise
        raise _failed(target, needed, cause) from fault


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep other processes from taking a folder for one that was left behind."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        hold(descriptor)
        yield
    finally:
        os.close(descriptor)


def write_file(path: Path, *chunks: bytes | memoryview) -> None:
    """A new file of these bytes, with the mode the umask gives; never replaces anything."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    flags |= getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in chunks:
            file.write(chunk)


def check_target(target: Path, *, overwrite: bool, only: Collection[str] | None = None) -> None:
    """Refuse a place where a folder must not be written; for `only` see `staged_folder`."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise WriteError(f"{target} is not a folder; give another name")
    if not any(target.iterdir()):
        return
    if not overwrite:
        raise TargetExistsError(
            f"{target} exists already; give another name or allow to overwrite it"
        )
    if only is not None:
        if odd := sorted(path.name for path in target.iterdir() if path.name not in only):
            raise WriteError(
                f"{target} also holds {odd[0]}, so it is not replaced; give another name"
            )
    elif not (target / "config.json").exists() and not (target / "modules.json").exists():
        raise WriteError(f"{target} is no model folder, so it is not replaced; give another name")
    if Path.cwd() == target or target in Path.cwd().parents:
        raise WriteError(f"{target} is the folder you stand in; change to another one first")


def make_folder(path: Path) -> None:
    """Make a folder for results and its parents, where they do not exist yet."""
    try:
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            sync(path.parent)
    except OSError as fault:
        reason = (fault.strerror or str(fault)).lower()
        full = fault.errno in _NO_ROOM
        way = "free some space or give another disk" if full else "give another place"
        raise WriteError(f"cannot make the folder {path}: {reason}; {way}") from fault


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


def _swap_in(staging: Path, target: Path) -> None:
    """Rename into place; a folder that stands there is removed, once it has been replaced."""
    if not target.exists() or not any(target.iterdir()):
        staging.rename(target)
        try:
            sync(target.parent)
        except OSError:
            target.rename(staging)
            raise
        return
    with _held(target):  # by then it has the name of the staging folder
        _exchange(staging, target)
        try:
            sync(target.parent)
        except OSError:
            _exchange(staging, target)
            raise
        shutil.rmtree(staging, ignore_errors=True)
    if staging.exists():
        log.warning("the old folder could not be removed and is now called %s", staging)


def _exchange(first: Path, second: Path) -> None:
    """Swap the names of two folders: in one step on Linux, so that a kill leaves both whole."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        renameat2 = None
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    names = os.fsencode(first), os.fsencode(second)
    if renameat2 is not None and renameat2(here, names[0], here, names[1], exchange) == 0:
        return
    aside = first.with_name(f"{first.name}-aside")
    second.rename(aside)
    try:
        first.rename(second)
        try:
            aside.rename(first)
        except OSError:
            second.rename(first)
            raise
    except OSError:
        aside.rename(second)
        raise


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
        f"{target} was not written: {(fault.strerror or str(fault)).lower()}{_place(fault)}; "
        f"{needed:,} bytes needed, {free:,} free; what stood there before is untouched"
    )


def _place(fault: OSError) -> str:
    return f" ({fault.filename})" if fault.filename else ""


def _no_room(target: Path, needed: int, free: int) -> WriteError:
    sizes, way = f"{needed:,} bytes needed, {free:,} free", "free some space"
    if free > needed:  # a quota, no more files, or more was written than was foreseen
        sizes += "; the system refuses to write more all the same"
        way = "look at quotas and limits (quota, df -i, ulimit -f)"
    return WriteError(
        f"no room for {target}: {sizes}; {way} or give another disk; nothing was changed"
    )


RESULT_STAGING = ".model"


@contextmanager
def result_folder(out: Path) -> Iterator[Path]:
    """A folder to write a model into; at the end its files move into `out`.

    The config moves last, when the other names are on the disk: a folder without one is not yet a
    model.
    """
    staging = out / RESULT_STAGING
    shutil.rmtree(staging, ignore_errors=True)  # of a process that was killed here
    yield staging
    try:
        for path in sorted(staging.iterdir(), key=lambda path: path.name == "config.json"):
            if path.name == "config.json":
                sync(out)
            if path.is_dir() and (out / path.name).is_dir():  # of the same run, finished before
                shutil.rmtree(out / path.name)
            path.replace(out / path.name)
        staging.rmdir()
        sync(out)
    except OSError as fault:
        raise WriteError(f"cannot put the model into {out}: {fault.strerror or fault}") from fault
