"""Adding rows to an index in a database: each block of rows is one transaction with its journal.

Whatever ends this process, the server or the connection, a block is there as a whole or not at
all, and the journal says how many rows are: the same work resumes after them. Searches see the rows
when the manifest counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from psycopg import sql

from bertsmith.errors import FolderError, WriteError
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.graph import update_graph
from bertsmith.search.postgres.schema import (
    DatabaseManifest,
    WriterJournal,
    check_plan,
    create_tables,
    drop_tables,
    is_registered,
    prepare_database,
    read_journal,
    read_manifest,
    require_manifest,
    rows_table,
    words_table,
    write_journal,
    write_manifest,
)
from bertsmith.search.postgres.session import UNCHANGED, Connection, Session
from bertsmith.search.postgres.wire import copied_rows, copied_words
from bertsmith.search.store import (
    Matrix,
    SourceRecord,
    StoredRow,
    StoreManifest,
    is_result,
    work_key,
)
from bertsmith.search.vector_rules import comparable_rows
from bertsmith.search.words import Words
from bertsmith.wording import counted


class DatabaseWriter:
    """Adds the rows of one source; `with` holds the index for this writer alone."""

    def __init__(
        self, address: Address, manifest: StoreManifest, source: SourceRecord, *, adding: bool
    ) -> None:
        """`adding` to an index that is there, or building it by its first source."""
        check_plan(manifest)
        self.address = address
        self.complete = False
        self.replaced = False
        self._adding = adding
        self._manifest = DatabaseManifest(**dict(manifest))
        self._source = source
        self._session = Session(address, exclusive=True)
        self._journal = WriterJournal(key="", sources=0)
        self._words = None if manifest.segmenter is None else Words(manifest.segmenter)

    @property
    def done(self) -> int:
        """How many rows of the source are safe."""
        return self._journal.done

    @property
    def first_id(self) -> int:
        """The id of the first row of the source."""
        return self._manifest.next_id

    def __enter__(self) -> Self:
        try:
            self._session.run(self._take_up)
        except BaseException:
            self._session.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def append(self, rows: Sequence[StoredRow], vectors: Matrix) -> None:
        """Add rows and their vectors (n, D); safe once this returns."""
        before = self._journal
        ready = comparable_rows(vectors, self._manifest, before.done + 1)
        known = dict.fromkeys(before.columns)
        for row in rows:
            known |= dict.fromkeys(row.meta)
        changes = {"done": before.done + len(rows), "columns": tuple(known)}
        after = before.model_copy(update=changes)
        table = sql.SQL("COPY {} FROM STDIN (FORMAT BINARY)")

        def add(connection: Connection) -> None:
            there = read_journal(connection, self.address)
            if there == after:
                return  # it was done, and its confirmation was lost
            if there != before:
                raise WriteError(
                    f"{self.address.shown} was changed by another writer; run the same command "
                    "again, which continues from what is there"
                )
            data = copied_rows(rows, ready, self._manifest.stored, before.done + 1)
            with connection.cursor().copy(table.format(rows_table(self.address))) as copy:
                for part in data:
                    copy.write(part)
            if self._words is not None and rows:
                words = copied_words((self._words.of(row.text) for row in rows), rows[0].id)
                with connection.cursor().copy(table.format(words_table(self.address))) as copy:
                    for part in words:
                        copy.write(part)
            write_journal(connection, self.address, after)

        self._session.run(add, safe=self._safe())
        self._journal = after

    def finish(self) -> None:
        """Make all rows of the source searchable at once."""
        if not self.complete:
            self._session.run(self._publish, safe=self._safe())
        update_graph(self._session)
        self._session.run(
            lambda connection: write_journal(connection, self.address, None), safe=self._safe()
        )

    def _publish(self, connection: Connection) -> None:
        old = self._manifest
        current = read_manifest(connection, self.address)
        new = old.model_copy(
            update={
                "generation": old.generation + 1,
                "rows": old.rows + self._journal.done,
                "next_id": old.next_id + self._journal.done,
                "columns": tuple(dict.fromkeys([*old.columns, *self._journal.columns])),
                "sources": (*old.sources, self._source),
            }
        )
        if current != new:
            write_manifest(connection, self.address, new)
            connection.execute(sql.SQL("ANALYZE {}").format(rows_table(self.address)))

    def _take_up(self, connection: Connection) -> None:
        """Resume from the journal if it is of this work; else begin anew."""
        prepare_database(connection, self.address)
        current = read_manifest(connection, self.address)
        if current is None and self._adding:
            raise FolderError(f"{self.address.shown} was removed while it was open")
        if current is not None:
            if not self._adding and not is_result(current, self._manifest, self._source):
                raise WriteError(
                    f"{self.address.shown} holds an index already; add to it with `bertsmith index "
                    "add`, or give another table"
                )
            self.complete = not self._adding
            self._manifest = current
        sources = len(self._manifest.sources)
        key = work_key(self._manifest, self._source)
        there = is_registered(connection, self.address)
        journal = read_journal(connection, self.address)
        same = journal is not None and journal.key == key
        if journal is not None and same and journal.sources < sources:
            self.complete = True
        if self.complete:
            return
        if journal is not None and same and journal.sources == sources:
            self._journal = journal
            return
        self.replaced = journal is not None
        self._journal = WriterJournal(key=key, sources=sources)
        if current is not None:
            self._remove_leftovers(connection)
        else:
            if there:
                drop_tables(connection, self.address)
            create_tables(connection, self.address, self._manifest)
        write_journal(connection, self.address, self._journal)

    def _remove_leftovers(self, connection: Connection) -> None:
        """Remove rows of other work that was never finished."""
        first = (self._manifest.next_id,)
        for table, column in ((rows_table, "id"), (words_table, "first")):
            query = sql.SQL("DELETE FROM {} WHERE {} >= %s")
            connection.execute(query.format(table(self.address), sql.Identifier(column)), first)

    def _safe(self) -> str:
        done = self._journal.done
        return f"{counted(done, 'row')} of the source are safe" if done else UNCHANGED


def change_manifest(session: Session, changes: dict[str, object]) -> DatabaseManifest:
    """Put a manifest with these changes in place of the current one; the new one."""
    planned: list[DatabaseManifest] = []

    def change(connection: Connection) -> DatabaseManifest:
        current = require_manifest(connection, session.address)
        if current not in planned:
            number = {"generation": current.generation + 1}
            planned.append(current.model_copy(update=changes | number))
            write_manifest(connection, session.address, planned[-1])
        return planned[-1]

    return session.run(change)
