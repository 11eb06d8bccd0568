"""Reading rows of an index: the nearest ones, those of some ids, all of them in pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from bertsmith.search.filters import Operator, Where
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.schema import DatabaseManifest, rows_table
from bertsmith.search.postgres.session import Connection, Session
from bertsmith.search.postgres.wire import vector_text, vectors_of
from bertsmith.search.store import Matrix, StoredRow

# Names of columns and values are parameters, never part of a statement. The numbers of cells were
# read by Python when the rows were written: a comparison means the same as in a folder, and no cell
# can make a cast fail.
_COMPARISONS: dict[Operator, sql.SQL] = {
    "<": sql.SQL("(numbers ->> %s)::float8 < %s"),
    "<=": sql.SQL("(numbers ->> %s)::float8 <= %s"),
    ">": sql.SQL("(numbers ->> %s)::float8 > %s"),
    ">=": sql.SQL("(numbers ->> %s)::float8 >= %s"),
    "=": sql.SQL("meta ->> %s = ANY(%s)"),
    "!=": sql.SQL("(meta ->> %s = ANY(%s)) IS NOT TRUE"),
}
PAGE = 4_096
LARGEST_EFFORT = 1_000  # the limit of pgvector
WIDER = 64  # further rows for a query that was rounded
LONGEST_ROW = 1.001  # of unit vectors that were rounded
SERVER_ERROR = 1e-5  # of a sum of float4, plenty
# The product as float4 of the stored vector with a query that is not rounded to halfvec. As an
# expression it is not what the HNSW index orders by, so every row is compared.
_EXACT = {
    "float32": sql.SQL("-(vector <#> %s::vector) DESC, id"),
    "float16": sql.SQL("-(vector::vector <#> %s::vector) DESC, id"),
}
# No row is converted: 15.6 instead of 37.0 ms for 20,000 rows of 384 columns.
_ROUNDED = {"float16": sql.SQL("-(vector <#> %s::halfvec) DESC, id")}
_NEAR = {
    "float32": sql.SQL("vector <#> %s::vector"),
    "float16": sql.SQL("vector <#> %s::halfvec"),
}
# Without these, all that is left to the planner is the HNSW index.
_OTHER_WAYS = ("enable_seqscan", "enable_bitmapscan", "enable_sort")


def condition(where: Where, next_id: int) -> tuple[sql.Composed, list[Any]]:
    """What follows WHERE, and its parameters: visible rows that meet every condition."""
    parts: list[sql.Composable] = [sql.SQL("id < %s")]
    values: list[Any] = [next_id]
    for one in where:
        parts.append(_COMPARISONS[one.operator])
        wanted: Any = list(one.values) if one.operator in ("=", "!=") else float(one.values[0])
        values += [one.column, wanted]
    return sql.SQL(" AND ").join(parts), values


class Rows:
    """The rows that a manifest makes visible."""

    def __init__(self, address: Address, manifest: DatabaseManifest) -> None:
        self._address = address
        self._manifest = manifest

    def exact(
        self, connection: Connection, query: Matrix, count: int, where: Where = ()
    ) -> list[tuple[Any, ...]]:
        """(id, vector) of at least the nearest rows to a query (D,): every row is compared."""
        if self._manifest.stored == "float16" and self._manifest.metric == "cosine":
            found = self._nearest(connection, query, count + WIDER, where, _ROUNDED)
            if len(found) < count + WIDER or self._has_nearest(query, found, count):
                return found
        return self._nearest(connection, query, count, where, _EXACT)

    def _has_nearest(self, query: Matrix, found: Sequence[tuple[Any, ...]], count: int) -> bool:
        """Whether rows that are nearest to the rounded query surely hold the nearest ones.

        A row beyond them has at most the least product with the rounded query, and its product with
        the query differs from that by no more than the length of what was rounded off.
        """
        _, vectors = self._arrays(found)
        rounded = query.astype(np.float16).astype(np.float64)
        products = vectors.astype(np.float64) @ np.stack([query.astype(np.float64), rounded]).T
        least = products[:, 1].min() + LONGEST_ROW * np.linalg.norm(query - rounded) + SERVER_ERROR
        return bool(np.sort(products[:, 0])[-count] > least)

    def near(
        self, connection: Connection, query: Matrix, count: int, where: Where, effort: int
    ) -> list[tuple[Any, ...]]:
        """The same by the HNSW index; there may be too few."""
        _set(
            connection,
            {
                "hnsw.ef_search": str(min(max(effort, count), LARGEST_EFFORT)),
                "hnsw.iterative_scan": "relaxed_order",
                **dict.fromkeys(_OTHER_WAYS, "off"),
            },
        )
        found = self._nearest(connection, query, count, where, _NEAR)
        if len(found) < count:  # the caller may need the other ways
            _set(connection, dict.fromkeys(_OTHER_WAYS, "on"))
        return found

    def count(self, connection: Connection, where: Where, most: int) -> int:
        """How many rows match, counted up to `most`."""
        text, values = condition(where, self._manifest.next_id)
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM (SELECT 1 FROM {} WHERE {} LIMIT %s) AS found").format(
                rows_table(self._address), text
            ),
            [*values, most],
        ).fetchone()
        return 0 if row is None else int(row[0])

    def matching(self, connection: Connection, where: Where) -> list[int]:
        """The ids of all rows that match."""
        text, values = condition(where, self._manifest.next_id)
        query = sql.SQL("SELECT id FROM {} WHERE {} ORDER BY id")
        cursor = connection.execute(query.format(rows_table(self._address), text), values)
        return [int(number) for (number,) in cursor]

    def stored(
        self, connection: Connection, ids: Sequence[int], where: Where = ()
    ) -> dict[int, StoredRow]:
        """The rows of these ids that match."""
        text, values = condition(where, self._manifest.next_id)
        query = sql.SQL("SELECT id, text, meta FROM {} WHERE id = ANY(%s) AND {}")
        cursor = connection.execute(
            query.format(rows_table(self._address), text), [list(ids), *values]
        )
        return {int(number): self.row(number, text, meta) for number, text, meta in cursor}

    def row(self, number: int, text: str, meta: Mapping[str, str]) -> StoredRow:
        """A row with its columns in the order of the source, which jsonb does not keep."""
        ordered = {name: meta[name] for name in self._manifest.columns if name in meta}
        return StoredRow(int(number), text, ordered)

    def vectors(
        self, connection: Connection, ids: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Those of these ids that are there (n,), ascending, and their vectors (n, D)."""
        query = sql.SQL("SELECT id, vector FROM {} WHERE id = ANY(%s) AND id < %s ORDER BY id")
        found = connection.execute(
            query.format(rows_table(self._address)),
            (list(ids), self._manifest.next_id),
            binary=True,
        ).fetchall()
        return self._arrays(found)

    def pages(self, session: Session) -> Iterator[list[tuple[Any, ...]]]:
        """(id, text, meta, vector) of all rows in pages, in the order of their ids."""
        query = sql.SQL(
            "SELECT id, text, meta, vector FROM {} WHERE id > %s AND id < %s ORDER BY id LIMIT %s"
        ).format(rows_table(self._address))
        last = -1
        while True:
            values = (last, self._manifest.next_id, PAGE)
            page = session.run(
                lambda c, v=values: c.execute(query, v, binary=True).fetchall()  # type: ignore[misc]
            )
            if not page:
                return
            yield page
            last = int(page[-1][0])

    def vector_pages(self, session: Session) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """(ids (n,), vectors (n, D)) of all rows in pages."""
        for page in self.pages(session):
            yield self._arrays([(row[0], row[3]) for row in page])

    def scores(self, query: Matrix, found: Sequence[tuple[Any, ...]]) -> list[tuple[int, float]]:
        """Ids with their products with a query (D,) in float64; the best first, ties by id."""
        if not found:
            return []
        ids, vectors = self._arrays(found)
        products = vectors.astype(np.float64) @ query.astype(np.float64)
        order = np.lexsort((ids, -products))
        return [(int(ids[i]), float(products[i])) for i in order]

    def _nearest(
        self,
        connection: Connection,
        query: Matrix,
        count: int,
        where: Where,
        order: dict[str, sql.SQL],
    ) -> list[tuple[Any, ...]]:
        text, values = condition(where, self._manifest.next_id)
        statement = sql.SQL("SELECT id, vector FROM {} WHERE {} ORDER BY {} LIMIT %s").format(
            rows_table(self._address), text, order[self._manifest.stored]
        )
        return connection.execute(
            statement, [*values, vector_text(query), count], binary=True
        ).fetchall()

    def _arrays(self, found: Sequence[tuple[Any, ...]]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        ids = np.array([row[0] for row in found], dtype=np.int64)
        if not found:
            return ids, np.zeros((0, self._manifest.dimension), dtype=np.float32)
        return ids, vectors_of([row[1] for row in found], self._manifest.stored)


def _set(connection: Connection, settings: dict[str, str]) -> None:
    """Change settings of the server for this transaction."""
    calls = sql.SQL(", ").join([sql.SQL("set_config(%s, %s, true)")] * len(settings))
    values = [part for pair in settings.items() for part in pair]
    connection.execute(sql.SQL("SELECT {}").format(calls), values)
