"""Files of an index, opened only when their size and sha256 are those of the manifest."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bertsmith.errors import FolderError
from bertsmith.files.digest import stream_digest
from bertsmith.files.safe_folder import Folder
from bertsmith.search.folder.manifest import FileRecord

WORKERS = 2


def open_checked(folder: Folder, name: str, record: FileRecord) -> io.FileIO:
    """The open file, read once to its end and rewound; whatever reads it next reads these bytes."""
    path = folder.path / name
    if not folder.has(name):
        raise FolderError(f"{path} is missing; {_advice()}")
    file = folder.open(name)
    try:
        size = os.fstat(file.fileno()).st_size
        if size != record.bytes:
            raise FolderError(
                f"{path} has {size:,} bytes instead of {record.bytes:,}: it was not copied "
                f"completely, or was changed; {_advice()}"
            )
        if stream_digest(file) != record.sha256:
            raise FolderError(
                f"{path} was changed: its sha256 is not the recorded one; {_advice()}"
            )
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def open_all(wanted: Iterable[tuple[Folder, str, FileRecord]]) -> list[io.FileIO]:
    """Several files, checked in parallel; none stays open if one of them is not sound."""
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = [pool.submit(open_checked, *one) for one in wanted]
    faults = [fault for one in futures if (fault := one.exception()) is not None]
    if faults:
        for one in futures:
            if one.exception() is None:
                one.result().close()
        raise faults[0]
    return [one.result() for one in futures]


def record_of(path: Path) -> FileRecord:
    """The size and sha256 of a file that was just written."""
    try:
        with path.open("rb") as file:
            return FileRecord(sha256=stream_digest(file), bytes=path.stat().st_size)
    except OSError as fault:
        raise FolderError(f"cannot read {path}: {fault.strerror or fault}") from fault


def _advice() -> str:
    return "copy the index again from its origin, or build it again"
