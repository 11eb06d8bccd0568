"""Files that grow over several runs: a killed run is resumed, and the result is the same.

Bytes are appended and synced first; then a journal that counts them is put in place as a whole.
What a killed process left behind the journaled ends is truncated before work resumes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Self

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import check_file_target, sync, write_staged
from bertsmith.files.digest import prefix_hash
from bertsmith.files.folder_lock import FolderLock

CONTENT = "content"
JOURNAL = "journal.json"
SECONDS_BETWEEN_SAVES = 2.0


class GrowingFiles:
    """Files of one folder that grow together; `state` is what the caller saved with them last.

    `starts` has the first bytes of each file. `key` identifies the work: what a run with another
    key left is discarded (then `replaced` is True), and so are files that were damaged since.
    """

    def __init__(self, folder: Path, journal: Path, key: str, starts: Mapping[str, bytes]) -> None:
        self.folder = folder
        self.state: dict[str, Any] = {}
        self.replaced = False
        self._journal = journal
        self._key = key
        self._starts = dict(starts)
        self._streams: dict[str, BinaryIO] = {}
        self._saved = time.monotonic()
        self._clear()
        if not self._resume():
            self.restart()

    def restart(self) -> None:
        """Discard everything that was written."""
        self.close()
        self._clear()
        try:
            self._journal.unlink(missing_ok=True)
            for name in self._starts:
                self._open(name, 0)
        except OSError as fault:
            self._fail(fault)
        for name, block in self._starts.items():
            self.append(name, block)

    def append(self, name: str, block: bytes) -> None:
        """Add bytes to a file; they are safe after the next `save`."""
        try:
            self._streams[name].write(block)
        except OSError as fault:
            self._fail(fault)
        self._sizes[name] += len(block)
        self._hashes[name].update(block)

    @property
    def due(self) -> bool:
        """Whether the last `save` is so long ago that it is time for another."""
        return time.monotonic() - self._saved > SECONDS_BETWEEN_SAVES

    def save(self, state: Mapping[str, Any]) -> None:
        """Bring all to the disk, with `state`; once this returns, no kill takes it away."""
        self.sync()
        self.state = dict(state)
        journal = {
            "key": self._key,
            "state": self.state,
            "sizes": self._sizes,
            "sha256": {name: one.hexdigest() for name, one in self._hashes.items()},
        }
        write_staged(self._journal, json.dumps(journal, ensure_ascii=False).encode())
        self._safe = sum(self._sizes.values())
        self._saved = time.monotonic()

    def sync(self) -> None:
        """Bring the bytes to the disk, without a note in the journal."""
        try:
            for stream in self._streams.values():
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as fault:
            self._fail(fault)

    def finish(self) -> dict[str, dict[str, Any]]:
        """Sync and close the files; size and sha256 of each, by name."""
        self.sync()
        self.close()
        return {
            name: {"size": self._sizes[name], "sha256": self._hashes[name].hexdigest()}
            for name in self._starts
        }

    def close(self) -> None:
        """Close the files; what was not synced may be lost."""
        for stream in self._streams.values():
            with contextlib.suppress(OSError):  # a full disk, which the write has reported
                stream.close()
        self._streams = {}

    def _clear(self) -> None:
        self.state = {}
        self._hashes = {name: hashlib.sha256() for name in self._starts}
        self._sizes = dict.fromkeys(self._starts, 0)
        self._safe = 0

    def _open(self, name: str, size: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        stream = os.fdopen(os.open(self.folder / name, flags, 0o666), "r+b")
        self._streams[name] = stream
        stream.truncate(size)
        stream.seek(size)

    def _resume(self) -> bool:
        """Read the journal of a run that was cut short; False if there is nothing to resume."""
        try:
            journal = json.loads(self._journal.read_bytes())
            if journal["key"] != self._key:
                self.replaced = True
                return False
            sizes = {name: int(journal["sizes"][name]) for name in self._starts}
            state = dict(journal["state"])
            for name, size in sizes.items():
                digest = prefix_hash(self.folder / name, size)
                if digest is None or digest.hexdigest() != journal["sha256"][name]:
                    return False
                self._hashes[name] = digest
            for name, size in sizes.items():
                self._open(name, size)
        except (OSError, ValueError, KeyError, TypeError):
            return False
        self.state, self._sizes, self._safe = state, sizes, sum(sizes.values())
        return True

    def _fail(self, fault: OSError) -> NoReturn:
        free = shutil.disk_usage(self.folder).free
        raise WriteError(
            f"cannot write {self.folder}: {fault.strerror or fault}; "
            f"{self._safe:,} bytes are safe, {free:,} are free on the disk; make room and run the "
            "same command again: it resumes from what is safe"
        ) from fault


class GrowingFile:
    """One file that grows in a hidden folder next to its path; `with` locks it for this process.

    Leaving without `finish` keeps what is safe for the next run.
    """

    def __init__(self, path: Path, key: str, start: bytes = b"") -> None:
        """`start` are its first bytes; see `GrowingFiles` for `key`."""
        self.path = path.resolve()
        self._key = key
        self._start = start
        self._finished = False
        self._folder = self.path.with_name(f".{self.path.name}.partial")
        self._lock = FolderLock(self._folder, work="run", instead="file")

    def __enter__(self) -> Self:
        check_file_target(self.path)
        self._lock.__enter__()
        try:
            journal = self._folder / JOURNAL
            self._files = GrowingFiles(self._folder, journal, self._key, {CONTENT: self._start})
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        self.replaced = self._files.replaced
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()
        # Without a journal there is nothing that a later run could resume from.
        if self._finished or not (self._folder / JOURNAL).exists():
            self._lock.remove_folder()
        self._lock.__exit__(None, None, None)

    @property
    def state(self) -> dict[str, Any]:
        """What was given to the last `append`, also of an earlier run; empty if there is none."""
        return self._files.state

    def append(self, block: bytes, state: Mapping[str, Any]) -> None:
        """Add bytes; once this returns, no kill takes them or `state` away."""
        self._files.append(CONTENT, block)
        self._files.save(state)

    def finish(self) -> None:
        """Put the file in its place, whole; the hidden folder is removed on leaving."""
        self._files.finish()
        try:
            (self._folder / CONTENT).replace(self.path)
            sync(self.path.parent)
        except OSError as fault:
            reason = (fault.strerror or str(fault)).lower()
            raise WriteError(
                f"cannot write {self.path}: {reason}; run the same command again: it resumes"
            ) from fault
        self._finished = True
