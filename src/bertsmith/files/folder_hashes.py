"""The sha256 of every file of a folder that bertsmith writes, in `hashes.json` beside them.

A flipped bit in a file of weights is a valid number, so that nothing but a hash can find it. Only
the files the folder was written with are named: what is added later (a report, a model card, logs)
is nobody's damage. A folder without the file is read as it is.

Loading hashes files of up to `AT_LOAD` bytes, which takes 45 ms at most, 3 % of the time in which a
command starts and loads them. Reading 440 MB of weights takes .4 s and hashing them .3 s: larger
files are hashed by `bertsmith info --verify-hashes` and `bertsmith doctor DIR` alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bertsmith.errors import FolderError
from bertsmith.files.atomic_file import sync
from bertsmith.files.atomic_folder import write_file
from bertsmith.files.digest import file_digest, stream_digest
from bertsmith.files.safe_folder import Folder

HASHES = "hashes.json"
AT_LOAD = 64 << 20
_DIGEST = re.compile("[0-9a-f]{64}")
_DEEPEST = 2  # path components: a file, or a file of a part such as 1_Pooling
_MOST = 10_000

Chosen = Callable[[str, int], bool]
"""Whether a file is to be hashed, by its path in the folder and its size in bytes."""


def everything(name: str, size: int) -> bool:
    """Choose every file."""
    return True


def at_load(name: str, size: int) -> bool:
    """Choose files that are quickly hashed."""
    return size <= AT_LOAD


def without_weights(name: str, size: int) -> bool:
    """Choose what a tokenizer and settings are read from."""
    return size <= AT_LOAD and not name.endswith(".safetensors")


def write_hashes(folder: Path) -> None:
    """Add the hashes of all files that are in a folder now; to be called last."""
    (folder / HASHES).unlink(missing_ok=True)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): file_digest(path) for path in files}
    write_file(folder / HASHES, (json.dumps({"sha256": found}, indent=2) + "\n").encode())
    sync(folder / HASHES)


@contextmanager
def verified(folder: Folder, chosen: Chosen = at_load) -> Iterator[None]:
    """Hash the files of a folder beside the work of the block; one that changed is refused.

    The block reads the same files, so that a disk gives them once, and hashing lets other threads
    run: on two free cores it takes no time of its own.
    """
    if not folder.has(HASHES):
        yield
        return
    with ThreadPoolExecutor(1, "hashes") as pool:
        work = pool.submit(damage, folder, chosen)
        try:
            yield
        except Exception:  # what is damaged says more than how it could not be read
            _refuse(folder, work.result())
            raise
        _refuse(folder, work.result())


def check_hashes(folder: Folder, chosen: Chosen = at_load) -> None:
    """Refuse a folder with a file that is not as it was written."""
    _refuse(folder, damage(folder, chosen) if folder.has(HASHES) else [])


def damage(folder: Folder, chosen: Chosen = everything) -> list[str]:
    """What is not as it was written, a phrase for each file; empty where nothing is stated."""
    if not folder.has(HASHES):
        return []
    found = []
    for name, digest in _stated(folder).items():
        *parts, last = name.split("/")
        place = folder
        for part in parts:
            place = place.part(part, source=HASHES)
        if not place.has(last):
            found.append(f"{name} is missing")
            continue
        with place.open(last) as file:
            if chosen(name, os.fstat(file.fileno()).st_size) and stream_digest(file) != digest:
                found.append(f"{name} has changed")
    return found


def _stated(folder: Folder) -> dict[str, str]:
    """The digests of the files by path."""
    stated = folder.json_object(HASHES).get("sha256")
    if (
        not isinstance(stated, dict)
        or len(stated) > _MOST
        or not all(name.count("/") < _DEEPEST for name in stated)
        or not all(isinstance(one, str) and _DIGEST.fullmatch(one) for one in stated.values())
    ):
        raise FolderError(
            f"{folder.path / HASHES} must have the sha256 of each file by its path; copy the "
            "folder anew from where it was written"
        )
    return stated


def _refuse(folder: Folder, found: list[str]) -> None:
    if found:
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise FolderError(
            f"{folder.path}: {'; '.join(found[:5])}{more} since the folder was written "
            f"({HASHES} has the sha256 of its files); copy it anew, or remove {HASHES} if the "
            "change is yours"
        )
