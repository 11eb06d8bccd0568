"""A file that grows over several runs: a killed run is resumed, and the result is the same.

Bytes are appended to a file in a folder next to the target and synced; then a journal that counts
them is put in place as a whole. What a killed process left behind the journaled end is cut off.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import check_file_target, sync, write_staged
from bertsmith.files.folder_lock import FolderLock

CONTENT = "content"
JOURNAL = "journal.json"


class GrowingFile:
    """A file in the making; `rows` are safe in it. `with` holds it for this process alone.

    `key` names the work: what an earlier run with another key left is thrown away, and `replaced`
    says so. Leaving without `finish` keeps what is safe for the next run.
    """

    def __init__(self, path: Path, key: str) -> None:
        self.path = path.resolve()
        self.rows = 0
        self.replaced = False
        self.tally: dict[str, int] = {}
        """Numbers of the caller's own that grow with the file."""
        self._key = key
        self._size = 0
        self._folder = self.path.with_name(f".{self.path.name}.partial")
        self._lock = FolderLock(self._folder, work="run", instead="file")
        self._stream: BinaryIO | None = None

    def __enter__(self) -> Self:
        check_file_target(self.path)
        self._lock.__enter__()
        try:
            self._take_up()
        except OSError as fault:
            self._leave()
            self._fail(fault)
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def append(self, block: bytes, rows: int) -> None:
        """Add the bytes of so many rows; once this returns, no kill takes them or `tally` away."""
        if self._stream is None:
            raise WriteError(f"{self.path} is not open; use `with`")
        try:
            self._stream.write(block)
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as fault:
            self._fail(fault)
        self._size += len(block)
        self.rows += rows
        state = {"key": self._key, "rows": self.rows, "bytes": self._size, "tally": self.tally}
        write_staged(self._folder / JOURNAL, json.dumps(state).encode() + b"\n")

    def finish(self) -> None:
        """Put the file in its place, whole, and remove the staging folder."""
        try:
            if self._stream is not None:
                self._stream.close()
            (self._folder / CONTENT).replace(self.path)
            sync(self.path.parent)
        except OSError as fault:
            self._fail(fault)
        self._lock.remove_folder()

    def _take_up(self) -> None:
        """Go on from the journal, if it is of this work; else begin anew."""
        state = _read(self._folder / JOURNAL)
        content = self._folder / CONTENT
        size = content.stat().st_size if content.is_file() else -1
        if state.get("key") == self._key and size >= state["bytes"]:
            self.rows, self._size, self.tally = state["rows"], state["bytes"], state["tally"]
        else:
            self.replaced = bool(state)
            (self._folder / JOURNAL).unlink(missing_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        self._stream = os.fdopen(os.open(content, flags, 0o666), "r+b")
        self._stream.truncate(self._size)
        self._stream.seek(self._size)

    def _leave(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._lock.__exit__(None, None, None)

    def _fail(self, fault: OSError) -> NoReturn:
        reason = (fault.strerror or str(fault)).lower()
        raise WriteError(
            f"cannot write {self.path}: {reason}; {self.rows:,} rows are safe, and the same "
            "command resumes from there"
        ) from fault


def _read(path: Path) -> dict[str, Any]:
    """The journal; {} if there is none that can be read."""
    try:
        state = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    wanted = {"key": str, "rows": int, "bytes": int, "tally": dict}
    sound = isinstance(state, dict) and all(type(state.get(k)) is t for k, t in wanted.items())
    return state if sound else {}
