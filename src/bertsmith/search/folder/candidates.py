"""Rows that may be the nearest, by the fastest way an index has; when that way is a graph."""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import sync
from bertsmith.search.exact import Flags, Positions, scan
from bertsmith.search.folder.manifest import FolderManifest
from bertsmith.search.folder.segments import BITS, CODES, SCALES, Segment
from bertsmith.search.graph import Graph
from bertsmith.search.quantized import (
    INT8_FACTOR,
    candidates_of_bits,
    hamming,
    sign_bits,
)
from bertsmith.search.recall import EXACT_BELOW, QUERIES, K, RecallRecord, least_effort
from bertsmith.search.store import Matrix

LARGEST_SHARE = 0.1  # of the rows fetched from a graph; beyond it a scan is cheaper
EXPANSIONS = (64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048)
LATER_SHARE = 0.1  # rows added after the graph was built, which are scanned at every search
LATER_ROWS = 20_000


class Candidates:
    """Finds rows near a vector: sign bits, int8 codes, graph, or a scan of all vectors."""

    def __init__(
        self, manifest: FolderManifest, segments: Sequence[Segment], graph: Graph | None
    ) -> None:
        self._manifest = manifest
        self._segments = segments
        self._graph = graph
        self.rows = sum(segment.rows for segment in segments)
        self._firsts = np.array([segment.first for segment in segments], dtype=np.int64)

    def of(self, queries: Matrix, k: int, alive: Flags | None) -> list[Positions]:
        """For each query (q, D) the positions of at least k rows, or of all there are."""
        if self._manifest.stored == "binary":
            return self._by_bits(queries, candidates_of_bits(k, self.rows), alive)
        if self._manifest.stored == "int8":
            codes = [(s.first, s.array(CODES), s.array(SCALES)) for s in self._segments]
            return scan(codes, queries, INT8_FACTOR * k, alive)
        available = self.rows if alive is None else int(alive.sum())
        if self._graph is None or available < EXACT_BELOW:
            return self.exact(queries, k, alive)
        return self._by_graph(self._graph, queries, k, alive)

    def exact(
        self, queries: Matrix, k: int, alive: Flags | None, *, after: int = 0
    ) -> list[Positions]:
        """The same by a scan of the vectors of all rows, or of those from position `after` on."""
        rows = [(s.first, s.vectors, None) for s in self._segments if s.first >= after]
        return scan(rows, queries, k, alive)

    def scores(self, query: Matrix, positions: Positions) -> NDArray[np.float64]:
        """The similarity of a query (D,) to rows, to the last bit of float64."""
        scores = np.empty(len(positions), dtype=np.float64)
        homes = self.segment_of(positions)
        for home in np.unique(homes):
            mine = homes == home
            segment = self._segments[home]
            rows = segment.vectors[positions[mine] - segment.first].astype(np.float64)
            scores[mine] = rows @ query.astype(np.float64)
        return scores

    def vector(self, position: int) -> Matrix:
        """The vector of a row: (D,)."""
        segment = self._segments[self.segment_of(position)]
        return np.asarray(segment.vectors[position - segment.first], dtype=np.float32)

    def segment_of(self, positions: Any) -> Any:
        """The number of the segment that a row lies in."""
        return np.searchsorted(self._firsts, positions, side="right") - 1

    def vector_blocks(self, after: int = 0) -> Iterator[tuple[int, NDArray[Any]]]:
        """(first position, vectors (n, D)) of each segment; its memory is given back after use."""
        for segment in self._segments:
            if segment.first >= after:
                yield segment.first, segment.vectors
                release(segment.vectors)

    def _by_bits(self, queries: Matrix, count: int, alive: Flags | None) -> list[Positions]:
        found = []
        for query in sign_bits(queries):
            parts = [hamming(query, segment.array(BITS)) for segment in self._segments]
            distances = np.concatenate(parts) if parts else np.zeros(0, np.uint16)
            if alive is not None:
                distances[~alive] = np.iinfo(np.uint16).max
            count = min(count, len(distances) if alive is None else int(alive.sum()))
            nearest = np.argpartition(distances, count - 1)[:count] if count else np.zeros(0, int)
            found.append(np.sort(nearest).astype(np.int64))
        return found

    def _by_graph(
        self, graph: Graph, queries: Matrix, k: int, alive: Flags | None
    ) -> list[Positions]:
        """Rows of the graph that are alive, and the rows that were added after it was built."""
        record = self._manifest.graph
        inside = self.rows if record is None else record.rows
        expansion = k if record is None else record.expansion_search
        share = 1.0 if alive is None else max(float(alive[:inside].mean()), 1 / inside)
        found: list[Positions] = [np.zeros(0, dtype=np.int64)] * len(queries)
        waiting = list(range(len(queries)))
        fetch = int(k / share) + 1
        while waiting and fetch <= LARGEST_SHARE * inside:
            near = graph.search(queries[waiting], fetch, max(expansion, fetch))
            for number, positions in zip(waiting, near, strict=True):
                found[number] = positions if alive is None else positions[alive[positions]]
            waiting = [number for number in waiting if len(found[number]) < k]
            fetch *= 2
        for number in waiting:
            (found[number],) = self.exact(queries[[number]], k, alive)
        if inside < self.rows:
            later = self.exact(queries, k, alive, after=inside)
            found = [np.union1d(one, two) for one, two in zip(found, later, strict=True)]
        return found


def release(array: NDArray[Any]) -> None:
    """Give the memory of a mapped file back; it is read again when it is needed."""
    mapped = getattr(array if isinstance(array, np.memmap) else array.base, "_mmap", None)
    if mapped is not None:
        mapped.madvise(mmap.MADV_DONTNEED)


def graph_is_due(manifest: FolderManifest) -> bool:
    """Whether the index is large enough for a graph and has none, or one of too few rows."""
    if manifest.stored not in ("float32", "float16") or manifest.stored_rows < EXACT_BELOW:
        return False
    if manifest.graph is None:
        return True
    later = manifest.stored_rows - manifest.graph.rows
    return later > max(LATER_ROWS, LATER_SHARE * manifest.graph.rows)


def choose_expansion(
    graph: Graph, candidates: Candidates, alive: Flags | None
) -> tuple[int, RecallRecord]:
    """The least search effort whose recall is surely enough, and that recall."""
    positions = _sample(candidates.rows, alive)
    queries = np.stack([candidates.vector(position) for position in positions])
    true = candidates.exact(queries, K + 1, None)
    return least_effort(
        positions.tolist(),
        [row.tolist() for row in true],
        lambda effort: [row.tolist() for row in graph.search(queries, K + 1, effort)],
        EXPANSIONS,
    )


def save_synced(graph: Graph, path: Path) -> None:
    """Write a graph so that its file is whole or not there."""
    staged = path.with_name(f".{path.name}.{secrets.token_hex(6)}.partial")
    try:
        graph.save(staged)
        sync(staged)
        staged.replace(path)
        sync(path.parent)
    except (OSError, RuntimeError) as fault:
        staged.unlink(missing_ok=True)
        raise WriteError(
            f"cannot write {path}: {fault}; the index is searched exactly until the same command "
            "builds its graph"
        ) from fault


def _sample(rows: int, alive: Flags | None) -> NDArray[np.int64]:
    there = np.arange(rows) if alive is None else np.flatnonzero(alive)
    drawn = np.random.default_rng(0).choice(there, min(QUERIES, len(there)), replace=False)
    return np.sort(drawn)
