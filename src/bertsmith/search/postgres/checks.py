"""What `index check` looks at in a database: that rows, words and the manifest fit together."""

from __future__ import annotations

import numpy as np
from psycopg import sql

from bertsmith.errors import FolderError
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.rows import Rows
from bertsmith.search.postgres.schema import (
    TYPES,
    DatabaseManifest,
    graph_name,
    pgvector_version,
    rows_table,
    words_table,
)
from bertsmith.search.postgres.session import Connection, Session, one_row
from bertsmith.search.postgres.terms import read_lengths
from bertsmith.search.postgres.wire import vectors_of
from bertsmith.search.recall import recall_words
from bertsmith.search.words import Words
from bertsmith.wording import counted

LENGTH_SPREAD = 0.01  # of unit vectors that were rounded to float16


def check_rows(session: Session, manifest: DatabaseManifest) -> list[str]:
    """Read every row; lines that say what was checked."""
    address = session.address
    lines = [session.run(lambda connection: _size(connection, address))]
    lengths = None
    if manifest.segmenter is not None:
        blocks = session.run(lambda c: read_lengths(c, address, manifest.next_id))
        lengths = np.concatenate([np.zeros(0, np.uint32), *(block for _, block in blocks)])
        if len(lengths) != manifest.next_id:
            raise _damaged(
                address, f"words of {len(lengths):,} rows instead of {manifest.next_id:,}"
            )
    words = None if manifest.segmenter is None else Words(manifest.segmenter)
    count = 0
    for page in Rows(address, manifest).pages(session):
        count += len(page)
        vectors = vectors_of([row[3] for row in page], manifest.stored).astype(np.float32)
        norms = np.linalg.norm(vectors, axis=1)
        unit = manifest.metric == "cosine"
        for (number, text, meta, _), norm in zip(page, norms, strict=True):
            if unit and not abs(norm - 1) < LENGTH_SPREAD:
                raise _damaged(address, f"row {number} has a vector that was not written here")
            if not isinstance(meta, dict) or not all(isinstance(v, str) for v in meta.values()):
                raise _damaged(address, f"row {number} has columns that were not written here")
            if words is not None and lengths is not None and len(words.of(text)) != lengths[number]:
                raise _damaged(address, f"row {number} has a text that does not fit its words")
    if count != manifest.rows:
        raise _damaged(address, f"there are {count:,} rows instead of {manifest.rows:,}")
    lines.append(
        f"{counted(manifest.rows, 'row')} of {manifest.dimension} dimensions ({manifest.stored} as "
        f"{TYPES[manifest.stored]}), {manifest.next_id - manifest.rows:,} deleted"
    )
    if manifest.graph is not None:
        session.run(lambda connection: _check_graph(connection, address))
        graph = manifest.graph
        lines.append(f"graph over {counted(graph.rows, 'row')}: {recall_words(graph.recall)}")
    return lines


def _size(connection: Connection, address: Address) -> str:
    total = 0
    for table in (rows_table(address), words_table(address)):
        query = sql.SQL("SELECT pg_total_relation_size({}::regclass)")
        name = sql.Literal(table.as_string(connection))
        row = connection.execute(query.format(name)).fetchone()
        total += int(row[0]) if row else 0
    (server,) = one_row(connection, "SELECT current_setting('server_version')")
    version = pgvector_version(connection)
    return f"PostgreSQL {server} with pgvector {version}: {total / 1e6:,.1f} MB"


def _check_graph(connection: Connection, address: Address) -> None:
    query = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    name = graph_name(address).as_string(connection)
    if connection.execute(query, (name,)).fetchone() != (True,):
        raise _damaged(address, "its HNSW index is missing or not valid")


def _damaged(address: Address, what: str) -> FolderError:
    return FolderError(
        f"{address.shown}: {what}; restore the database, or build the index again under another "
        "name"
    )
