"""An index in a folder: checked as a whole when it is opened, then read through memory maps."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bertsmith.errors import ConfigError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.safe_folder import Folder
from bertsmith.search import bm25
from bertsmith.search.bm25 import Bm25, Postings
from bertsmith.search.exact import SPARE, Flags, Positions
from bertsmith.search.filters import Where, check_columns
from bertsmith.search.folder import columns
from bertsmith.search.folder.candidates import (
    Candidates,
    choose_expansion,
    graph_is_due,
    save_synced,
)
from bertsmith.search.folder.checked_files import open_all, record_of
from bertsmith.search.folder.manifest import (
    FolderManifest,
    GraphRecord,
    read_manifest,
    write_manifest,
)
from bertsmith.search.folder.segments import Segment, check_rows, segment_folder
from bertsmith.search.folder.writer import FolderWriter, index_lock
from bertsmith.search.graph import (
    CONNECTIVITY,
    EXPANSION_ADD,
    LIBRARY,
    UsearchGraph,
    fill,
    library_version,
)
from bertsmith.search.store import (
    BankRecord,
    Hit,
    Matrix,
    SourceRecord,
    StoredRow,
    StoreManifest,
    check_k,
)
from bertsmith.search.vector_rules import comparable_queries
from bertsmith.search.words import Words


class FolderStore:
    """The rows of an index folder."""

    def __init__(self, folder: Folder) -> None:
        """Opens the index; an index that is damaged in any way is refused here."""
        self.path = folder.path
        self._folder = folder
        self._open()

    @classmethod
    def open(cls, path: Path) -> FolderStore:
        """The index at `path`."""
        return cls(Folder.at(path, wanted="the folder of an index"))

    def _open(self) -> None:
        self.manifest: FolderManifest = read_manifest(self._folder)
        wanted = [(self._folder, name, record) for name, record in self.manifest.files.items()]
        for segment in self.manifest.segments:
            home = segment_folder(self._folder, segment.name)
            wanted += [(home, name, record) for name, record in segment.files.items()]
        files = iter(open_all(wanted))
        own = {name: next(files) for name in self.manifest.files}
        self._graph_file: io.FileIO | None = None
        self.segments: list[Segment] = []
        first = 0
        for segment in self.manifest.segments:
            parts = {name: next(files) for name in segment.files}
            self.segments.append(
                Segment(segment, parts, dimension=self.manifest.dimension, first=first)
            )
            first += segment.rows
        self.alive: Flags | None = None
        if self.manifest.deleted is not None:
            deleted = np.frombuffer(own[self.manifest.deleted].readall(), dtype="<u8")
            self.alive = np.ones(first, dtype=bool)
            self.alive[deleted.astype(np.int64)] = False
        if self.manifest.graph is not None:
            self._graph_file = own[self.manifest.graph.file]
        self._own = own

    @property
    def rows(self) -> int:
        """Rows that a search can return."""
        return self.manifest.rows

    @property
    def dimension(self) -> int:
        """D, the width of a vector."""
        return self.manifest.dimension

    @property
    def graph_file(self) -> io.FileIO | None:
        """The checked file of the graph."""
        return self._graph_file

    @cached_property
    def ids(self) -> NDArray[np.uint64]:
        """The ids of all stored rows, ascending."""
        if not self.segments:
            return np.zeros(0, dtype=np.uint64)
        return np.concatenate([segment.ids for segment in self.segments])

    @cached_property
    def candidates(self) -> Candidates:
        """What finds rows near a vector; reads the graph at its first use."""
        graph = None
        if self._graph_file is not None:
            graph = UsearchGraph(self.dimension)
            graph.read(self._graph_file, more=False)
        return Candidates(self.manifest, self.segments, graph)

    @cached_property
    def _words(self) -> tuple[Words, Bm25]:
        if self.manifest.segmenter is None:
            raise ConfigError(
                f"{self.path} was built with --no-words, so it cannot be searched by words; build "
                "it again without that option"
            )
        postings = [
            Postings(
                terms=segment.bytes_of(bm25.TERMS).split(b"\n")[:-1],
                starts=segment.array(bm25.POSTING_STARTS),
                rows=segment.array(bm25.POSTINGS),
                counts=segment.array(bm25.COUNTS),
                lengths=segment.array(bm25.LENGTHS),
                first=segment.first,
            )
            for segment in self.segments
        ]
        return Words(self.manifest.segmenter), Bm25(postings)

    def search(self, vectors: Matrix, k: int, where: Where = ()) -> list[list[Hit]]:
        """The k nearest rows for each query vector (q, D), the best first, ties by id."""
        queries = comparable_queries(vectors, self.manifest)
        check_k(k)
        alive = self._flags(where)
        found = self.candidates.of(queries, min(k, self.rows) + SPARE, alive)
        results = []
        for query, positions in zip(queries, found, strict=True):
            scores = self.candidates.scores(query, positions)
            order = np.lexsort((positions, -scores))[:k]
            results.append(
                [self._hit(int(positions[i]), float(scores[i]), float(scores[i])) for i in order]
            )
        return results

    def search_words(self, queries: Sequence[str], k: int, where: Where = ()) -> list[list[Hit]]:
        """The k best rows for each query by BM25; the similarity of these hits is nan."""
        check_k(k)
        alive = self._flags(where)
        words, ranking = self._words
        return [
            [
                self._hit(position, score, float("nan"))
                for position, score in ranking.best(words.of(query), k, alive)
            ]
            for query in queries
        ]

    def similarities(self, vector: Matrix, ids: Sequence[int]) -> list[float]:
        """The similarity of a query vector (D,) to the rows of these ids."""
        query = comparable_queries(np.atleast_2d(vector), self.manifest)[0]
        return [float(score) for score in self.candidates.scores(query, self._positions(ids))]

    def matching(self, where: Where) -> list[int]:
        """The ids of all rows that match."""
        alive = self._flags(where)
        return [int(i) for i in (self.ids if alive is None else self.ids[alive])]

    def texts(self) -> Iterator[StoredRow]:
        """All rows, in the order of their ids."""
        for segment in self.segments:
            for row in range(segment.rows):
                if self.alive is None or self.alive[segment.first + row]:
                    yield segment.stored_row(row)

    def writer(self, source: SourceRecord) -> FolderWriter:
        """Begin to add the rows of a source, or resume it; one writer at a time."""
        return FolderWriter(self.path, self.manifest, source, finished=update_graph)

    def delete(self, ids: Sequence[int]) -> int:
        """Delete rows by id; how many there were. An id that does not exist is an error."""
        with index_lock(self.path):
            self.reopen()
            positions = np.unique(self._positions(ids))
            alive = np.ones(len(self.ids), dtype=bool) if self.alive is None else self.alive
            alive[positions] = False
            generation = self.manifest.generation + 1
            name = f"deleted-{generation}.u64"
            write_staged(self.path / name, np.flatnonzero(~alive).astype("<u8").tobytes())
            files = {n: f for n, f in self.manifest.files.items() if n != self.manifest.deleted}
            self._replace(
                {
                    "generation": generation,
                    "rows": int(alive.sum()),
                    "deleted": name,
                    "files": files | {name: record_of(self.path / name)},
                }
            )
        return len(positions)

    def record_bank(self, bank: BankRecord | None) -> None:
        """Store how questions are answered."""
        with index_lock(self.path):
            self.reopen()
            self._replace({"generation": self.manifest.generation + 1, "bank": bank})

    def check(self) -> list[str]:
        """Read everything and compare it with the manifest; what was checked, as lines."""
        self.reopen()
        return check_rows(self.path, self.manifest, self.segments)

    def reopen(self) -> None:
        """Read the index as it is now."""
        self.close()
        for name in ("ids", "candidates", "_words"):
            self.__dict__.pop(name, None)
        self._open()

    def close(self) -> None:
        """Close the files."""
        for segment in self.segments:
            segment.close()
        for file in self._own.values():
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _replace(self, changes: Mapping[str, object]) -> None:
        """Put a manifest with these changes in place and read the index again."""
        write_manifest(self.path, self.manifest.model_copy(update=dict(changes)))
        self.reopen()

    def _flags(self, where: Where) -> Flags | None:
        """(N,) the rows that may be returned; None: all."""
        if not where:
            return self.alive
        check_columns(where, self.manifest.columns)
        parts = [
            columns.matching_rows(
                json.loads(segment.bytes_of(columns.COLUMNS)),
                segment.array(columns.CELLS),
                segment.rows,
                where,
            )
            for segment in self.segments
        ]
        flags: Flags = np.concatenate(parts) if parts else np.zeros(0, dtype=bool)
        return flags if self.alive is None else flags & self.alive

    def _positions(self, ids: Sequence[int]) -> Positions:
        wanted = np.asarray(ids, dtype=np.int64)
        places = np.searchsorted(self.ids, wanted)
        there = places < len(self.ids)
        there[there] = self.ids[places[there]] == wanted[there]
        if self.alive is not None:
            there[there] = self.alive[places[there]]
        if not there.all():
            absent = [int(i) for i in wanted[~there]]
            some = ", ".join(map(str, absent[:5])) + (" ..." if len(absent) > 5 else "")
            raise ConfigError(f"{self.path} has no row with the id {some}; nothing was changed")
        return places

    def _hit(self, position: int, score: float, similarity: float) -> Hit:
        segment = self.segments[self.candidates.segment_of(position)]
        row = segment.stored_row(position - segment.first)
        return Hit(row.id, score, row.text, row.meta, similarity)


def new_index(path: Path, plan: StoreManifest, source: SourceRecord) -> FolderWriter:
    """Begin, or resume, to build an index from its first source."""
    return FolderWriter(path, FolderManifest(**dict(plan)), source, finished=update_graph)


def update_graph(path: Path) -> None:
    """Build or extend the graph of an index whose folder is locked, if it should have one."""
    with FolderStore.open(path) as store:
        manifest = store.manifest
        old = manifest.graph
        inside = 0 if old is None else old.rows
        if not graph_is_due(manifest):
            return
        graph = UsearchGraph(store.dimension)
        if store.graph_file is not None:
            graph.read(store.graph_file, more=True)
        fill(graph, store.candidates.vector_blocks(inside))
        expansion, recall = choose_expansion(graph, store.candidates, store.alive)
        generation = manifest.generation + 1
        name = f"graph-{generation}.usearch"
        save_synced(graph, path / name)
        record = GraphRecord(
            library=LIBRARY,
            version=library_version(),
            file=name,
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            expansion_search=expansion,
            rows=manifest.stored_rows,
            recall=recall,
        )
        files = {n: f for n, f in manifest.files.items() if old is None or n != old.file}
        changes = {
            "generation": generation,
            "graph": record,
            "files": files | {name: record_of(path / name)},
        }
        write_manifest(path, manifest.model_copy(update=changes))
