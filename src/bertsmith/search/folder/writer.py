"""Adding rows to an index folder: segments grow behind a journal, and the manifest comes last.

Whatever ends the process, the rows that the journal counts are safe, and the same work resumes
after them with the same bytes in the end. Readers see nothing of it before the new manifest.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError

from bertsmith.config import Settings
from bertsmith.errors import TargetExistsError, WriteError
from bertsmith.files.atomic_file import sync, write_staged
from bertsmith.files.folder_lock import NAME as LOCK
from bertsmith.files.folder_lock import FolderLock
from bertsmith.files.safe_folder import Folder
from bertsmith.search.bm25 import postings_files
from bertsmith.search.folder import manifest as manifests
from bertsmith.search.folder.columns import column_files
from bertsmith.search.folder.manifest import FolderManifest, SegmentRecord, write_manifest
from bertsmith.search.folder.segments import FOLDER, MOST_ROWS, TEXTS, SegmentWriter
from bertsmith.search.store import (
    Matrix,
    SourceRecord,
    StoredRow,
    is_result,
    work_key,
)
from bertsmith.search.vector_rules import comparable_rows
from bertsmith.search.words import Words

JOURNAL = "journal.json"
log = logging.getLogger(__name__)


class _Journal(Settings):
    """What is safe of work that is not finished."""

    key: str
    sources: int
    """How many sources the index had when the work began: once it has more, the work is done."""
    done: int = 0
    segments: tuple[SegmentRecord, ...] = ()
    columns: tuple[str, ...] = ()
    open_rows: int = 0
    open_sizes: dict[str, int] = Field(default_factory=dict)


def index_lock(path: Path) -> FolderLock:
    """Holds an index for one writer."""
    return FolderLock(path, work="writer", instead="index")


class FolderWriter:
    """Adds the rows of one source; `with` holds the folder for this process alone."""

    def __init__(
        self,
        path: Path,
        manifest: FolderManifest,
        source: SourceRecord,
        *,
        finished: Callable[[Path], None],
    ) -> None:
        """`manifest` describes the index; if its generation is 0 there is none yet.

        `finished` is called with the folder after all rows are searchable.
        """
        self.path = path
        self.complete = False
        self.replaced = False
        self._manifest = manifest
        self._source = source
        self._finished = finished
        self._lock = index_lock(path)
        self._segment: SegmentWriter | None = None
        self._words: Words | None = None
        self._journal = _Journal(key="", sources=0)

    @property
    def done(self) -> int:
        """How many rows of the source are safe."""
        return self._journal.done

    @property
    def first_id(self) -> int:
        """The id of the first row of the source."""
        return self._manifest.next_id

    def __enter__(self) -> Self:
        self._check_target()
        self._lock.__enter__()
        try:
            self._take_up()
        except OSError as fault:
            self._lock.__exit__()
            raise self._failed(fault) from fault
        except BaseException:
            self._lock.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._segment is not None:
            self._segment.close()
        self._lock.__exit__()

    def append(self, rows: Sequence[StoredRow], vectors: Matrix) -> None:
        """Add rows and their vectors (n, D); safe once this returns."""
        ready = comparable_rows(vectors, self._manifest, self._journal.done + 1)
        known = dict.fromkeys(self._journal.columns)
        for row in rows:
            known |= dict.fromkeys(row.meta)
        self._note({"columns": tuple(known)})
        start = 0
        while start < len(rows):
            segment = self._open_segment()
            stop = min(len(rows), start + MOST_ROWS - segment.rows)
            segment.append(rows[start:stop], ready[start:stop])
            self._note(
                {
                    "done": self._journal.done + stop - start,
                    "open_rows": segment.rows,
                    "open_sizes": dict(segment.sizes),
                }
            )
            start = stop
            if segment.rows == MOST_ROWS:
                self._close_segment(segment)
        self._write_journal()

    def finish(self) -> None:
        """Make all rows of the source searchable at once."""
        if not self.complete:
            if self._journal.open_rows:  # perhaps of a run that was killed after its last row
                self._close_segment(self._open_segment())
            write_manifest(self.path, self._new_manifest())
        (self.path / JOURNAL).unlink(missing_ok=True)
        self._finished(self.path)

    def _new_manifest(self) -> FolderManifest:
        old = self._manifest
        columns = tuple(dict.fromkeys([*old.columns, *self._journal.columns]))
        return old.model_copy(
            update={
                "generation": old.generation + 1,
                "segments": (*old.segments, *self._journal.segments),
                "rows": old.rows + self._journal.done,
                "next_id": old.next_id + self._journal.done,
                "columns": columns,
                "sources": (*old.sources, self._source),
            }
        )

    def _check_target(self) -> None:
        """Refuse a folder that something else lies in, before a lock is put there."""
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            raise WriteError(f"{self.path} is not a folder; give another name")
        if not self.path.exists():
            return
        names = {entry.name for entry in self.path.iterdir()}
        if names - {LOCK} and not names & {JOURNAL, manifests.NAME, FOLDER}:
            raise TargetExistsError(
                f"{self.path} exists already and is not an index; give another name"
            )

    def _take_up(self) -> None:
        """Resume from the journal if it is of this work; else begin anew."""
        folder = Folder.at(self.path)
        there = folder.has(manifests.NAME)
        adding = self._manifest.generation > 0
        if there:
            current = manifests.read_manifest(folder)
            if not adding and not is_result(current, self._manifest, self._source):
                raise WriteError(
                    f"{self.path} holds an index already; add to it with `bertsmith index add`, or "
                    "give another name"
                )
            self.complete = not adding
            self._manifest = current
        sources = len(self._manifest.sources)
        key = work_key(self._manifest, self._source)
        journal = _read_journal(self.path / JOURNAL)
        if journal is not None and journal.key == key and journal.sources < sources:
            self.complete = True
        if journal is not None and journal.key == key and journal.sources == sources:
            self._journal = journal
        else:
            self.replaced = journal is not None and not self.complete
            self._journal = _Journal(key=key, sources=sources)
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        """Remove what neither the manifest nor the journal knows, of writers that were killed."""
        segments = (*self._manifest.segments, *self._journal.segments)
        known = {one.name for one in segments}
        if self._journal.open_rows:
            known.add(self._segment_name())
        for entry in (self.path / FOLDER).glob("*"):
            if entry.name not in known:
                shutil.rmtree(entry)
        for pattern in ("graph-*", "deleted-*", ".*.partial"):
            for entry in self.path.glob(pattern):
                if entry.name not in self._manifest.files:
                    entry.unlink()

    def _segment_name(self) -> str:
        return f"{len(self._manifest.segments) + len(self._journal.segments):05}"

    def _open_segment(self) -> SegmentWriter:
        if self._segment is None:
            self._segment = SegmentWriter(
                self.path / FOLDER / self._segment_name(),
                self._manifest.stored,
                rows=self._journal.open_rows,
                sizes=self._journal.open_sizes,
            )
        return self._segment

    def _close_segment(self, segment: SegmentWriter) -> None:
        """Derive columns and postings from the texts, and journal the segment as finished."""
        rows = [json.loads(line) for line in (segment.folder / TEXTS).read_bytes().splitlines()]
        derived = column_files([meta for _, meta in rows])
        if self._manifest.segmenter is not None:
            self._words = self._words or Words(self._manifest.segmenter)
            derived |= postings_files(map(self._words.of, (text for text, _ in rows)))
        for name, content in derived.items():
            write_staged(segment.folder / name, content)
        record = segment.record(derived)
        sync(segment.folder)
        self._segment = None
        segments = (*self._journal.segments, record)
        self._note({"segments": segments, "open_rows": 0, "open_sizes": {}})
        self._write_journal()

    def _note(self, changes: Mapping[str, object]) -> None:
        self._journal = self._journal.model_copy(update=dict(changes))

    def _write_journal(self) -> None:
        write_staged(self.path / JOURNAL, self._journal.model_dump_json().encode() + b"\n")

    def _failed(self, fault: OSError) -> WriteError:
        return WriteError(f"cannot write {self.path}: {(fault.strerror or str(fault)).lower()}")


def _read_journal(path: Path) -> _Journal | None:
    try:
        return _Journal.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
