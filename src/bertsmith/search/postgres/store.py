"""An index in a PostgreSQL database: the rows lie in a table and are compared by pgvector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from psycopg import sql

from bertsmith.errors import ConfigError
from bertsmith.search.exact import SPARE
from bertsmith.search.filters import Where, check_columns
from bertsmith.search.postgres import terms
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.checks import check_rows
from bertsmith.search.postgres.rows import Rows
from bertsmith.search.postgres.schema import (
    DatabaseManifest,
    require_manifest,
    rows_table,
    write_manifest,
)
from bertsmith.search.postgres.session import Connection, Session
from bertsmith.search.postgres.writer import DatabaseWriter, change_manifest
from bertsmith.search.recall import EXACT_BELOW
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
