"""What `index check` looks at beyond the hashes: that the parts of an index fit together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from bertsmith.errors import FolderError
from bertsmith.search import bm25
from bertsmith.search.folder import columns
from bertsmith.search.folder.manifest import FolderManifest
from bertsmith.search.folder.segments import STARTS, TEXTS, Segment
from bertsmith.search.recall import recall_words
from bertsmith.wording import counted


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
