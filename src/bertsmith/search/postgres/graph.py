"""The HNSW index of pgvector: built after loading, its recall measured and stored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import psycopg
import torch
from numpy.typing import NDArray
from psycopg import sql

from bertsmith.errors import DatabaseError
from bertsmith.search.exact import BestRows
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.rows import LARGEST_EFFORT, Rows
from bertsmith.search.postgres.schema import (
    TYPES,
    DatabaseGraph,
    DatabaseManifest,
    graph_name,
    pgvector_version,
    require_manifest,
    rows_table,
    write_manifest,
)
from bertsmith.search.postgres.session import Connection, Session, one_row
from bertsmith.search.recall import (
    EXACT_BELOW,
    QUERIES,
    K,
    RecallRecord,
    least_effort,
)
from bertsmith.search.store import Matrix

CONNECTIVITY = 16
EXPANSION_ADD = 64
MEMORY = 256  # MB for building; a graph that does not fit is built many times slower
INDEXED = {"float32": 2_000, "float16": 4_000}  # the most dimensions that pgvector indexes
EFFORTS = (40, 64, 100, 160, 256, 400, 640, LARGEST_EFFORT)
LATER_SHARE = 0.1  # rows added since the recall was measured
LATER_ROWS = 20_000
SAFE = "all rows are safe and searched exactly until the same command builds the graph"


def update_graph(session: Session) -> None:
    """Build the graph of an index that should have one, or measure it again after it grew."""
    address = session.address
    manifest = session.run(lambda connection: require_manifest(connection, address), safe=SAFE)
    if not _is_due(manifest):
        return
    try:
        version = session.run(lambda c: _build(c, address, manifest, parallel=True), safe=SAFE)
    except DatabaseError as fault:
        if not isinstance(fault.__cause__, psycopg.errors.DiskFull):
            raise
        # Perhaps a container with little shared memory, through which parallel workers build.
        version = session.run(lambda c: _build(c, address, manifest, parallel=False), safe=SAFE)
    effort, recall = _measured(session, manifest)
    graph = DatabaseGraph(
        version=version,
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=effort,
        rows=manifest.rows,
        recall=recall,
    )

    def record(connection: Connection) -> None:
        current = require_manifest(connection, address)
        if current.graph != graph:
            changes = {"generation": current.generation + 1, "graph": graph}
            write_manifest(connection, address, current.model_copy(update=changes))

    session.run(record, safe=SAFE)


def _is_due(manifest: DatabaseManifest) -> bool:
    if manifest.rows < EXACT_BELOW or manifest.dimension > INDEXED[manifest.stored]:
        return False
    if manifest.graph is None:
        return True
    later = manifest.rows - manifest.graph.rows
    return later > max(LATER_ROWS, LATER_SHARE * manifest.graph.rows)


def _build(
    connection: Connection, address: Address, manifest: DatabaseManifest, *, parallel: bool
) -> str:
    """Build the graph if it is not there; the version of pgvector."""
    (memory,) = one_row(
        connection, "SELECT setting::bigint / 1024 FROM pg_settings WHERE name = %s", (_MEMORY,)
    )
    if memory < MEMORY:
        one_row(connection, "SELECT set_config(%s, %s, true)", (_MEMORY, f"{MEMORY}MB"))
    if not parallel:
        one_row(connection, "SELECT set_config(%s, '0', true)", (_WORKERS,))
    connection.execute(
        sql.SQL(
            "CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw (vector {}) "
            "WITH (m = {}, ef_construction = {})"
        ).format(
            graph_name(address),
            rows_table(address),
            sql.SQL(TYPES[manifest.stored] + "_ip_ops"),
            sql.Literal(CONNECTIVITY),
            sql.Literal(EXPANSION_ADD),
        )
    )
    return pgvector_version(connection) or ""


_MEMORY = "maintenance_work_mem"
_WORKERS = "max_parallel_maintenance_workers"


def _measured(session: Session, manifest: DatabaseManifest) -> tuple[int, RecallRecord]:
    """The search effort that is enough, and its recall, with rows of the index as queries."""
    rows = Rows(session.address, manifest)
    own, queries = _sample(session, rows, manifest)
    true = _exact(session, rows, queries)

    def search(effort: int) -> list[list[int]]:
        def near(connection: Connection) -> list[list[int]]:
            return [
                [found[0] for found in rows.near(connection, query, K + 1, (), effort)]
                for query in queries
            ]

        return session.run(near, safe=SAFE)

    return least_effort(own, true, search, EFFORTS)


def _sample(session: Session, rows: Rows, manifest: DatabaseManifest) -> tuple[list[int], Matrix]:
    """Ids of rows and their vectors (q, D); enough are drawn although some were deleted."""
    share = manifest.rows / manifest.next_id
    drawn = min(manifest.next_id, int(2 * QUERIES / share))
    numbers = np.random.default_rng(0).choice(manifest.next_id, drawn, replace=False)
    ids, vectors = session.run(lambda c: rows.vectors(c, numbers.tolist()), safe=SAFE)
    return ids[:QUERIES].tolist(), vectors[:QUERIES].astype(np.float32)


def _exact(session: Session, rows: Rows, queries: Matrix) -> list[list[int]]:
    """The K + 1 nearest rows of each query (q, D): all vectors pass by here once."""
    best = BestRows(len(queries), K + 1)
    known: list[NDArray[np.int64]] = []
    first = 0
    for ids, vectors in rows.vector_pages(session):
        best.offer(torch.from_numpy(queries @ vectors.astype(np.float32).T), first)
        known.append(ids)
        first += len(ids)
    every = np.concatenate(known)
    return [_listed(every[positions]) for positions in best.lists()]


def _listed(ids: Sequence[int] | NDArray[np.int64]) -> list[int]:
    return [int(number) for number in ids]
