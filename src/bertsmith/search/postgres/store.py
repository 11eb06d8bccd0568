"""An index in a PostgreSQL database: the rows lie in a table and are compared by pgvector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from psycopg import sql

from bertsmith.errors import ConfigError, FolderError
from bertsmith.search.exact import SPARE
from bertsmith.search.filters import Where, check_columns
from bertsmith.search.postgres import terms
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.rows import Rows
from bertsmith.search.postgres.schema import (
    TYPES,
    DatabaseManifest,
    graph_name,
    pgvector_version,
    require_manifest,
    rows_table,
    words_table,
    write_manifest,
)
from bertsmith.search.postgres.session import Connection, Session, one_row
from bertsmith.search.postgres.terms import read_lengths
from bertsmith.search.postgres.wire import vectors_of
from bertsmith.search.postgres.writer import DatabaseWriter, change_manifest
from bertsmith.search.recall import EXACT_BELOW, recall_words
from bertsmith.search.store import (
    BankRecord,
    Hit,
    Matrix,
    SourceRecord,
    StoredRow,
    check_k,
)
from bertsmith.search.vector_rules import comparable_queries
from bertsmith.search.words import Words
from bertsmith.wording import counted

LENGTH_SPREAD = 0.01  # of unit vectors that were rounded to float16


class DatabaseStore:
    """The rows of an index in a database; a lost connection is renewed."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._session = Session(address)
        try:
            self._read()
        except BaseException:
            self._session.close()
            raise

    def _read(self) -> None:
        """See the index as it is now."""
        self.manifest: DatabaseManifest = self._session.run(
            lambda connection: require_manifest(connection, self.address)
        )
        self._rows = Rows(self.address, self.manifest)
        self._blocks: terms.Blocks | None = None

    @property
    def rows(self) -> int:
        """Rows that a search can return."""
        return self.manifest.rows

    @property
    def dimension(self) -> int:
        """D, the width of a vector."""
        return self.manifest.dimension

    def search(self, vectors: Matrix, k: int, where: Where = ()) -> list[list[Hit]]:
        """The k nearest rows for each query vector (q, D), the best first, ties by id."""
        queries = comparable_queries(vectors, self.manifest)
        check_k(k)
        check_columns(where, self.manifest.columns)

        def run(connection: Connection) -> list[list[Hit]]:
            available = self.rows
            if where and self.manifest.graph is not None:
                available = self._rows.count(connection, where, EXACT_BELOW)
            return [self._nearest(connection, query, k, where, available) for query in queries]

        return self._session.run(run)

    def search_words(self, queries: Sequence[str], k: int, where: Where = ()) -> list[list[Hit]]:
        """The k best rows for each query by BM25; the similarity of these hits is nan."""
        check_k(k)
        check_columns(where, self.manifest.columns)
        if self.manifest.segmenter is None:
            raise ConfigError(
                f"{self.address.shown} was built with --no-words, so it cannot be searched by "
                "words; build it again without that option"
            )
        words = Words(self.manifest.segmenter)
        return self._session.run(
            lambda connection: [
                self._worded(connection, words.of(query), k, where) for query in queries
            ]
        )

    def similarities(self, vector: Matrix, ids: Sequence[int]) -> list[float]:
        """The similarity of a query vector (D,) to the rows of these ids."""
        query = comparable_queries(np.atleast_2d(vector), self.manifest)[0]
        there, rows = self._session.run(lambda connection: self._rows.vectors(connection, ids))
        self._require_all(ids, there.tolist())
        products = rows.astype(np.float64) @ query.astype(np.float64)
        known = dict(zip(there.tolist(), products.tolist(), strict=True))
        return [known[number] for number in ids]

    def matching(self, where: Where) -> list[int]:
        """The ids of all rows that match."""
        check_columns(where, self.manifest.columns)
        return self._session.run(lambda connection: self._rows.matching(connection, where))

    def texts(self) -> Iterator[StoredRow]:
        """All rows, in the order of their ids."""
        for page in self._rows.pages(self._session):
            for number, text, meta, _ in page:
                yield self._rows.row(number, text, meta)

    def writer(self, source: SourceRecord) -> DatabaseWriter:
        """Begin to add the rows of a source, or resume it; one writer at a time."""
        return DatabaseWriter(self.address, self.manifest, source, adding=True)

    def delete(self, ids: Sequence[int]) -> int:
        """Delete rows by id; how many there were. An id that does not exist is an error."""
        wanted = sorted(set(ids))
        planned: list[DatabaseManifest] = []

        def run(connection: Connection) -> None:
            current = require_manifest(connection, self.address)
            if current in planned:
                return  # it was done, and its confirmation was lost
            query = sql.SQL("DELETE FROM {} WHERE id = ANY(%s) AND id < %s RETURNING id")
            gone = connection.execute(
                query.format(rows_table(self.address)), (wanted, current.next_id)
            ).fetchall()
            self._require_all(wanted, [number for (number,) in gone])
            changes = {"generation": current.generation + 1, "rows": current.rows - len(gone)}
            planned.append(current.model_copy(update=changes))
            write_manifest(connection, self.address, planned[-1])

        with Session(self.address, exclusive=True) as session:
            session.run(run)
        self._read()
        return len(wanted)

    def record_bank(self, bank: BankRecord | None) -> None:
        """Store how questions are answered."""
        with Session(self.address, exclusive=True) as session:
            change_manifest(session, {"bank": bank})
        self._read()

    def check(self) -> list[str]:
        """Read everything and compare it with the manifest; what was checked, as lines."""
        self._read()
        return check_rows(self._session, self.manifest)

    def close(self) -> None:
        """End the connection."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _nearest(
        self, connection: Connection, query: Matrix, k: int, where: Where, available: int
    ) -> list[Hit]:
        wanted = min(k, self.rows) + SPARE
        graph = self.manifest.graph
        found = []
        if graph is not None and available >= EXACT_BELOW:
            found = self._rows.near(connection, query, wanted, where, graph.expansion_search)
        if len(found) < min(wanted, available):
            found = self._rows.exact(connection, query, wanted, where)
        best = self._rows.scores(query, found)[:k]
        rows = self._rows.stored(connection, [number for number, _ in best])
        return [
            Hit(number, score, rows[number].text, rows[number].meta, score)
            for number, score in best
            if number in rows
        ]

    def _worded(
        self, connection: Connection, words: Sequence[str], k: int, where: Where
    ) -> list[Hit]:
        """The best rows by words; of more and more, until enough are there and match."""
        if self._blocks is None:
            self._blocks = terms.read_lengths(connection, self.address, self.manifest.next_id)
        ranking = terms.ranking(connection, self.address, self._blocks, words)
        keys = [terms.term_key(word) for word in words]
        count = 2 * k
        while True:
            best = ranking.best(keys, count)
            rows = self._rows.stored(connection, [number for number, _ in best], where)
            hits = [
                Hit(number, score, rows[number].text, rows[number].meta, float("nan"))
                for number, score in best
                if number in rows
            ]
            if len(hits) >= k or len(best) < count:
                return hits[:k]
            count *= 4

    def _require_all(self, ids: Sequence[int], there: Sequence[int]) -> None:
        known = set(there)
        absent = [number for number in ids if number not in known]
        if absent:
            some = ", ".join(map(str, absent[:5])) + (" ..." if len(absent) > 5 else "")
            raise ConfigError(
                f"{self.address.shown} has no row with the id {some}; nothing was changed"
            )


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
