"""Segments: folders of at most 65,536 rows, written once, in the forms that a search reads.

vectors.f32 or vectors.f16 are the rows (n, D); codes.i8 with scales.f32, or bits.u64, what a
quantized search scans. texts.jsonl holds [text, {column: value}] per line, starts.u64 (n + 1)
where lines begin, ids.u64 (n) the ids. All numbers are little-endian.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import FolderError, WriteError
from bertsmith.files.atomic_file import sync
from bertsmith.files.safe_folder import Folder
from bertsmith.search import bm25
from bertsmith.search.folder import columns
from bertsmith.search.folder.checked_files import record_of
from bertsmith.search.folder.manifest import FolderManifest, SegmentRecord
from bertsmith.search.quantized import int8_codes, sign_bits, words_of_bits
from bertsmith.search.recall import recall_words
from bertsmith.search.store import Matrix, StoredRow, StoredType
from bertsmith.wording import counted

MOST_ROWS = 65_536
FOLDER = "segments"
TEXTS, STARTS, IDS = "texts.jsonl", "starts.u64", "ids.u64"
CODES, SCALES, BITS = "codes.i8", "scales.f32", "bits.u64"
VECTORS = {"float32": "vectors.f32", "float16": "vectors.f16"}
_TYPES = {"f32": "<f4", "f16": "<f2", "i8": "i1", "u64": "<u8", "u32": "<u4"}

Array = NDArray[Any]


def vectors_file(stored: StoredType) -> str:
    """The file with the rows that scores are computed from; quantized types keep float16."""
    return VECTORS.get(stored, VECTORS["float16"])


def scanned_files(stored: StoredType) -> tuple[str, ...]:
    """The further files of quantized types."""
    return {"int8": (CODES, SCALES), "binary": (BITS,)}.get(stored, ())


class SegmentWriter:
    """A segment in the making; `append` returns when the rows are on disk.

    `sizes` are the safe bytes of each file, `rows` the safe rows: given to a new writer after a
    crash, it cuts off whatever lies behind them.
    """

    def __init__(
        self, folder: Path, stored: StoredType, *, rows: int = 0, sizes: Mapping[str, int] = {}
    ) -> None:
        self.folder = folder
        self.rows = rows
        self._stored = stored
        names = (vectors_file(stored), *scanned_files(stored), TEXTS, STARTS, IDS)
        self.sizes = {name: sizes.get(name, 0) for name in names}
        self._files: dict[str, BinaryIO] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, size in self.sizes.items():
                self._files[name] = _opened(folder / name, size)
            sync(folder)
            sync(folder.parent)
        except OSError as fault:
            self.close()
            raise self._failed(fault) from fault
        if not self.rows and not self.sizes[STARTS]:
            self._write({STARTS: np.zeros(1, dtype="<u8").tobytes()})

    def append(self, rows: Sequence[StoredRow], vectors: Matrix) -> None:
        """Add rows with their vectors (n, D), as they are to be compared."""
        lines = [
            json.dumps([row.text, dict(row.meta)], ensure_ascii=False).encode() + b"\n"
            for row in rows
        ]
        ends = self.sizes[TEXTS] + np.cumsum([len(line) for line in lines])
        parts = {
            TEXTS: b"".join(lines),
            STARTS: ends.astype("<u8").tobytes(),
            IDS: np.array([row.id for row in rows], dtype="<u8").tobytes(),
        }
        parts |= _vector_parts(vectors, self._stored)
        self._write(parts)
        self.rows += len(rows)

    def record(self, derived: Collection[str]) -> SegmentRecord:
        """Close the segment; its record for the manifest, with the files that were derived."""
        self.close()
        names = sorted({*self.sizes, *derived})
        for left in self.folder.iterdir():
            if left.name not in names:  # of a writer that was killed while it renamed a file
                left.unlink()
        files = {name: record_of(self.folder / name) for name in names}
        return SegmentRecord(name=self.folder.name, rows=self.rows, files=files)

    def close(self) -> None:
        """Close the files; what is safe stays."""
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _write(self, parts: Mapping[str, bytes]) -> None:
        try:
            for name, data in parts.items():
                file = self._files[name]
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError as fault:
            raise self._failed(fault) from fault
        for name, data in parts.items():
            self.sizes[name] += len(data)

    def _failed(self, fault: OSError) -> WriteError:
        reason = (fault.strerror or str(fault)).lower()
        return WriteError(
            f"cannot write {self.folder}: {reason}; what was added before is safe, and the same "
            "command resumes from there"
        )


def _opened(path: Path, size: int) -> BinaryIO:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(path, flags, 0o666), "r+b")
    file.truncate(size)
    file.seek(size)
    return file


def _vector_parts(vectors: Matrix, stored: StoredType) -> dict[str, bytes]:
    """The bytes of rows (n, D) in the files of a type."""
    kept: Array = vectors.astype("<f4" if stored == "float32" else "<f2")
    parts = {vectors_file(stored): kept.tobytes()}
    if stored == "int8":
        codes, scales = int8_codes(vectors)
        parts |= {CODES: codes.tobytes(), SCALES: scales.astype("<f4").tobytes()}
    elif stored == "binary":
        parts[BITS] = sign_bits(vectors).astype("<u8").tobytes()
    return parts


class Segment:
    """A segment that was checked: its arrays, mapped into memory, and its texts."""

    def __init__(
        self, record: SegmentRecord, files: Mapping[str, io.FileIO], *, dimension: int, first: int
    ) -> None:
        """`first` is the position of its first row among all rows of the index."""
        self.rows = record.rows
        self.first = first
        self._files = files
        self._record = record
        widths = {
            "vectors.f32": dimension,
            "vectors.f16": dimension,
            CODES: dimension,
            BITS: words_of_bits(dimension),
        }
        self._arrays = {
            name: _mapped(files[name], name, widths.get(name)) for name in files if name != TEXTS
        }
        self.ids = self._arrays[IDS]
        kept = next(name for name in VECTORS.values() if name in self._arrays)
        self.vectors = self._arrays[kept]
        if not len(self.ids) == len(self.vectors) == record.rows == len(self._arrays[STARTS]) - 1:
            raise FolderError(
                f"segment {record.name} has {len(self.vectors):,} vectors and {len(self.ids):,} "
                f"ids, but {record.rows:,} rows are recorded; build the index again"
            )

    def array(self, name: str) -> Array:
        """One of the files as an array."""
        return self._arrays[name]

    @property
    def has_words(self) -> bool:
        """Whether its words were indexed."""
        return "postings.u32" in self._arrays

    def bytes_of(self, name: str) -> bytes:
        """A whole file."""
        return os.pread(self._files[name].fileno(), self._record.files[name].bytes, 0)

    def text(self, row: int) -> tuple[str, dict[str, str]]:
        """The text and the columns of a row."""
        starts = self._arrays[STARTS]
        begin, end = int(starts[row]), int(starts[row + 1])
        text, meta = json.loads(os.pread(self._files[TEXTS].fileno(), end - begin, begin))
        return text, meta

    def stored_row(self, row: int) -> StoredRow:
        """A row with its id."""
        return StoredRow(int(self.ids[row]), *self.text(row))

    def close(self) -> None:
        """Close the files."""
        self._arrays.clear()
        for file in self._files.values():
            file.close()


def segment_folder(folder: Folder, name: str) -> Folder:
    """The folder of a segment of an index."""
    return folder.part(FOLDER, source="index.json").part(name, source="index.json")


def _mapped(file: io.FileIO, name: str, width: int | None) -> Array:
    kind = np.dtype(_TYPES.get(name.rpartition(".")[2], "u1"))
    if not os.fstat(file.fileno()).st_size:
        return np.zeros((0,) if width is None else (0, width), dtype=kind)
    # Copy-on-write: torch wants memory that could be written; the file never is.
    mapped: Array = np.memmap(file, dtype=kind, mode="c")
    return mapped if width is None else mapped.reshape(-1, width)


def check_rows(path: Path, manifest: FolderManifest, segments: Sequence[Segment]) -> list[str]:
    """Read every row; lines that say what was checked."""
    files = len(manifest.files) + sum(len(segment.files) for segment in manifest.segments)
    size = sum(f.bytes for s in manifest.segments for f in s.files.values())
    size += sum(f.bytes for f in manifest.files.values())
    last = -1
    for record, segment in zip(manifest.segments, segments, strict=True):
        where = path / "segments" / record.name
        last = _check_ids(segment, where, last)
        _check_texts(segment, where)
        _check_vectors(segment, where)
        if manifest.segmenter is not None:
            _check_postings(segment, where)
    lines = [
        f"{counted(files, 'file')} ({size / 1e6:,.1f} MB) as recorded in index.json",
        f"{counted(manifest.rows, 'row')} of {manifest.dimension} dimensions ({manifest.stored}), "
        f"{manifest.stored_rows - manifest.rows:,} deleted",
    ]
    if manifest.graph is not None:
        recall = manifest.graph.recall
        lines.append(f"graph over {counted(manifest.graph.rows, 'row')}: {recall_words(recall)}")
    return lines


def _check_ids(segment: Segment, where: Path, last: int) -> int:
    ids = np.concatenate([[last], segment.ids.astype(np.int64)])
    if not (np.diff(ids) > 0).all():
        raise FolderError(f"{where / 'ids.u64'}: the ids do not rise; build the index again")
    return int(ids[-1])


def _check_texts(segment: Segment, where: Path) -> None:
    data = segment.bytes_of(TEXTS)
    starts = segment.array(STARTS).astype(np.int64)
    for row, (begin, end) in enumerate(pairwise(starts)):
        try:
            text, meta = json.loads(data[begin:end])
        except ValueError as fault:
            raise FolderError(
                f"{where / TEXTS}, row {row + 1}: not a row of an index; build the index again"
            ) from fault
        if not isinstance(text, str) or not isinstance(meta, dict):
            raise FolderError(f"{where / TEXTS}, row {row + 1}: no text; build the index again")
    json.loads(segment.bytes_of(columns.COLUMNS))


def _check_vectors(segment: Segment, where: Path) -> None:
    sums = np.einsum("ij,ij->i", segment.vectors, segment.vectors, dtype=np.float32)
    wrong = np.flatnonzero(~np.isfinite(sums))
    if len(wrong):
        raise FolderError(
            f"{where}: the vector of row {wrong[0] + 1} is not finite; build the index again"
        )


def _check_postings(segment: Segment, where: Path) -> None:
    rows, counts = segment.array(bm25.POSTINGS), segment.array(bm25.COUNTS)
    lengths = segment.array(bm25.LENGTHS)
    sums = np.bincount(rows, weights=counts, minlength=segment.rows)
    if len(lengths) != segment.rows or not (sums == lengths).all():
        raise FolderError(f"{where}: words and lengths do not agree; build the index again")
