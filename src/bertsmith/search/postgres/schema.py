"""The tables of an index, and the row that describes it.

bertsmith_indexes has a row per index: its manifest (none before its first build is finished), the
sha256 of it, and the journal of a writer that has not finished. An index called NAME has a table
NAME with the rows, and NAME_words with the postings of their words:

    NAME(id, text, meta, numbers, vector)   meta: {column: cell}; numbers: cells that are numbers
    NAME_words(term, first, rows, counts)   per word and block of rows that were added together

Rows with an id from the manifest's next_id on belong to a writer that has not finished; no search
sees them. Names are checked and quoted, and everything else is a parameter of a statement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from psycopg import sql
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from bertsmith.config import Settings
from bertsmith.errors import ConfigError, FolderError, TargetExistsError
from bertsmith.files.digest import json_digest
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.session import Connection, one_row
from bertsmith.search.recall import RecallRecord
from bertsmith.search.store import StoredType, StoreManifest

FORMAT = 1
REGISTRY = "bertsmith_indexes"
SETUP_LOCK = 0x62657274  # for whoever creates the extension or the registry
LEAST_PGVECTOR = (0, 8)
TYPES: Mapping[StoredType, str] = {"float32": "vector", "float16": "halfvec"}
LARGEST_DIMENSION = 16_000


class DatabaseGraph(Settings):
    """The HNSW index of pgvector over all rows, which the server keeps up to date."""

    version: str
    connectivity: int
    expansion_add: int
    expansion_search: int
    rows: int
    """Rows when the recall was measured."""
    recall: RecallRecord


class DatabaseManifest(StoreManifest):
    """All that is recorded about an index in a database."""

    format: int = FORMAT
    generation: int = 0
    """Counts the manifests."""
    graph: DatabaseGraph | None = None


class WriterJournal(Settings):
    """What is safe of work that is not finished."""

    key: str
    sources: int
    """How many sources the index had when the work began: once it has more, the work is done."""
    done: int = 0
    columns: tuple[str, ...] = ()


def rows_table(address: Address) -> sql.Identifier:
    """The table with the rows."""
    return sql.Identifier(address.table)


def words_table(address: Address) -> sql.Identifier:
    """The table with the postings."""
    return sql.Identifier(f"{address.table}_words")


def graph_name(address: Address) -> sql.Identifier:
    """The HNSW index."""
    return sql.Identifier(f"{address.table}_graph")


def check_plan(manifest: StoreManifest) -> None:
    """Refuse what pgvector cannot hold."""
    if manifest.stored not in TYPES:
        raise ConfigError(
            f"a database stores float32 (vector) or float16 (halfvec), not {manifest.stored}; set "
            "--dtype float16"
        )
    if manifest.dimension > LARGEST_DIMENSION:
        raise ConfigError(
            f"pgvector holds vectors of up to {LARGEST_DIMENSION:,} dimensions, not "
            f"{manifest.dimension:,}"
        )


def pgvector_version(connection: Connection) -> str | None:
    """The version of the extension in this database."""
    row = connection.execute(
        "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
    ).fetchone()
    return None if row is None else str(row[0])


def prepare_database(connection: Connection, address: Address) -> None:
    """Create the extension and the registry where they are missing."""
    one_row(connection, "SELECT pg_advisory_xact_lock(%s)", (SETUP_LOCK,))
    if pgvector_version(connection) is None:
        offered = connection.execute(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
        if offered is None:
            raise ConfigError(
                f"{address.shown}: the server has no pgvector; install it there (its package is "
                "called postgresql-NN-pgvector or the like)"
            )
        connection.execute("CREATE EXTENSION vector")
    version = pgvector_version(connection) or "0"
    if tuple(int(part) for part in version.split(".")[:2]) < LEAST_PGVECTOR:
        raise ConfigError(
            f"{address.shown}: the database has pgvector {version}, and 0.8 is needed; update it "
            "there, then run ALTER EXTENSION vector UPDATE"
        )
    if not _exists(connection, REGISTRY):
        connection.execute(
            sql.SQL(
                "CREATE TABLE {} (name text PRIMARY KEY, manifest jsonb, sha256 text, "
                "journal jsonb)"
            ).format(sql.Identifier(REGISTRY))
        )


def create_tables(connection: Connection, address: Address, manifest: StoreManifest) -> None:
    """New tables of an index; whatever else has one of their names is left alone."""
    for name in (address.table, f"{address.table}_words", f"{address.table}_graph"):
        if _exists(connection, name):
            raise TargetExistsError(
                f"{address.shown}: {name} exists already and is not an index; give another table"
            )
    connection.execute(
        sql.SQL(
            "CREATE TABLE {} (id bigint PRIMARY KEY, text text NOT NULL, meta jsonb NOT NULL, "
            "numbers jsonb NOT NULL, vector {}({}) NOT NULL)"
        ).format(
            rows_table(address),
            sql.SQL(TYPES[manifest.stored]),
            sql.Literal(manifest.dimension),
        )
    )
    connection.execute(
        sql.SQL(
            "CREATE TABLE {} (term text, first bigint, rows bytea NOT NULL, "
            "counts bytea NOT NULL, PRIMARY KEY (term, first))"
        ).format(words_table(address))
    )


def drop_tables(connection: Connection, address: Address) -> None:
    """Remove the tables of a build that was never finished."""
    for table in (rows_table(address), words_table(address)):
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))


def read_manifest(connection: Connection, address: Address) -> DatabaseManifest | None:
    """The manifest, if it is as it was written; None: no build was finished."""
    if not _exists(connection, REGISTRY):
        return None
    row = connection.execute(
        sql.SQL("SELECT manifest, sha256 FROM {} WHERE name = %s").format(sql.Identifier(REGISTRY)),
        (address.table,),
    ).fetchone()
    if row is None or row[0] is None:
        return None
    content, digest = row
    if not isinstance(content, dict) or json_digest(content) != digest:
        raise FolderError(
            f"{address.shown}: its row of {REGISTRY} was changed after it was written; restore the "
            "database, or build the index again under another name"
        )
    form = content.get("format")
    if not isinstance(form, int) or form > FORMAT:
        raise FolderError(
            f"{address.shown} has format {form}, and this version reads up to {FORMAT}: update "
            "bertsmith, or build the index again"
        )
    try:
        return DatabaseManifest.model_validate_json(json.dumps(content))
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise FolderError(f"{address.shown}: {place}: {first['msg']}") from fault


def require_manifest(connection: Connection, address: Address) -> DatabaseManifest:
    """The manifest of an index that must be there."""
    manifest = read_manifest(connection, address)
    if manifest is None:
        raise FolderError(
            f"{address.shown} is not an index; `bertsmith index build --store` makes one, or "
            "finish that command"
        )
    return manifest


def write_manifest(connection: Connection, address: Address, manifest: DatabaseManifest) -> None:
    """Put a manifest in place."""
    content = manifest.model_dump(mode="json")
    connection.execute(
        sql.SQL("UPDATE {} SET manifest = %s, sha256 = %s WHERE name = %s").format(
            sql.Identifier(REGISTRY)
        ),
        (Jsonb(content), json_digest(content), address.table),
    )


def is_registered(connection: Connection, address: Address) -> bool:
    """Whether the tables of this name are ours."""
    row = connection.execute(
        sql.SQL("SELECT 1 FROM {} WHERE name = %s").format(sql.Identifier(REGISTRY)),
        (address.table,),
    ).fetchone()
    return row is not None


def read_journal(connection: Connection, address: Address) -> WriterJournal | None:
    """The journal of a writer that has not finished; its row is locked for this transaction."""
    row = connection.execute(
        sql.SQL("SELECT journal FROM {} WHERE name = %s FOR UPDATE").format(
            sql.Identifier(REGISTRY)
        ),
        (address.table,),
    ).fetchone()
    if row is None or row[0] is None:
        return None
    try:
        return WriterJournal.model_validate_json(json.dumps(row[0]))
    except ValidationError:
        return None


def write_journal(connection: Connection, address: Address, journal: WriterJournal | None) -> None:
    """Record what is safe, together with the rows of this transaction."""
    value = None if journal is None else Jsonb(journal.model_dump(mode="json"))
    connection.execute(
        sql.SQL(
            "INSERT INTO {} (name, journal) VALUES (%s, %s) "
            "ON CONFLICT (name) DO UPDATE SET journal = excluded.journal"
        ).format(sql.Identifier(REGISTRY)),
        (address.table, value),
    )


def _exists(connection: Connection, name: str) -> bool:
    """Whether the first schema of the search path has a table or index of this name."""
    return (
        one_row(
            connection,
            "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = %s "
            "AND relnamespace = current_schema()::regnamespace)",
            (name,),
        )[0]
        is True
    )
