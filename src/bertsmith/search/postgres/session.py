"""Work on a database: connecting, one transaction per piece of work, waiting for a lost server.

A piece of work may run again after the connection was lost at any moment, also when its commit was
done but not confirmed; work that writes looks first whether it was done already.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bertsmith.errors import BertsmithError, ConfigError, DatabaseError, LockedError
from bertsmith.search.postgres.address import Address

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

FIRST_WAIT = 5.0  # seconds for the first connection: it may be a wrong address
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
UNCHANGED = "nothing was changed"
# libpq waits for minutes or forever where a network swallows what is sent
DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
TRANSIENT_CLASSES = ("08", "40")  # connection exceptions, conflicts with other transactions
TRANSIENT = ("57P01", "57P02", "57P03", "53300")  # shutdown, crash, starting, too many connections
# Refusals of a server that is there; libpq gives no code for them.
_REFUSED = re.compile(
    "does not exist|authentication failed|no password supplied|pg_hba.conf|permission denied|"
    "not permitted|not currently accepting"
)
_HOLDER = """
    SELECT l.pid, a.application_name FROM pg_locks l
    LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((l.classid::bigint << 32) | l.objid::bigint) = %s
"""

log = logging.getLogger(__name__)


class Session:
    """One connection at a time to the database of an index, renewed when it was lost."""

    def __init__(self, address: Address, *, exclusive: bool = False) -> None:
        """`exclusive` holds the index for one writer as long as the session is open."""
        self.address = address
        self._exclusive = exclusive
        self._connection: Connection | None = None
        self._met = False
        # In pg_stat_activity, for the message of a second writer; at most 63 bytes.
        self._token = secrets.token_hex(4)
        host = socket.gethostname().encode("ascii", "replace").decode()[:30]
        self._name = f"bertsmith {os.getpid()}@{host} {self._token}"

    def run(self, work: Callable[[Connection], T], *, safe: str = UNCHANGED) -> T:
        """The result of work in one transaction; `safe` says in errors what is not lost."""
        lost = 0.0
        pause = FIRST_PAUSE
        while True:
            try:
                connection = self._connected()
                with connection.transaction():
                    return work(connection)
            except psycopg.Error as fault:
                if not self._is_transient(fault):
                    raise DatabaseError(
                        f"{self.address.shown}: {self._reason(fault)}; {safe}"
                    ) from fault
                self.close()
                lost = lost or time.monotonic()
                waited = time.monotonic() - lost
                limit = self.address.wait if self._met else min(FIRST_WAIT, self.address.wait)
                if waited >= limit:
                    raise DatabaseError(
                        f"{self.address.shown}: the server did not answer for {waited:.0f} seconds "
                        f"({self._reason(fault)}); {safe}; run the same command when it is back"
                    ) from fault
                log.info("%s: %s; trying again", self.address.shown, self._reason(fault))
                time.sleep(min(pause, limit - waited))
                pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        """End the connection, which gives back the lock."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._connect()
            try:
                _check_encoding(connection, self.address)
                if self._exclusive:
                    self._lock(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self._met = True
        return self._connection

    def _connect(self) -> Connection:
        try:
            given = conninfo_to_dict(self.address.conninfo)
            wanted = {name: value for name, value in DEFAULTS.items() if name not in given}
            conninfo = make_conninfo(
                self.address.conninfo,
                **wanted,
                application_name=self._name,
                client_encoding="UTF8",
            )
        except psycopg.ProgrammingError as fault:
            raise ConfigError(
                f"{self.address.shown}: {self._reason(fault)}; correct the address"
            ) from fault
        # Statements are not prepared: a plan must fit the values of each search.
        return psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)

    def _lock(self, connection: Connection) -> None:
        (schema,) = one_row(connection, "SELECT current_schema()")
        name = f"bertsmith {schema}.{self.address.table}"
        key = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
        (mine,) = one_row(connection, "SELECT pg_try_advisory_lock(%s)", (key,))
        if mine:
            return
        holder = connection.execute(_HOLDER, (key,)).fetchone()
        pid, known = holder or (0, "")
        if self._met and self._token in (known or ""):
            # The server has not noticed yet that our last connection is gone.
            raise psycopg.OperationalError("the server still holds the connection that was lost")
        raise LockedError(
            f"another writer is at work in {self.address.shown} ({_holder(pid, known or '')}); "
            "wait for it, stop it, or give another index"
        )

    def _is_transient(self, fault: psycopg.Error) -> bool:
        state = fault.sqlstate
        if state is not None:
            return state[:2] in TRANSIENT_CLASSES or state in TRANSIENT
        broken = self._connection is not None and self._connection.closed
        operational = isinstance(fault, psycopg.OperationalError)
        return bool(broken or (operational and not _REFUSED.search(str(fault))))

    def _reason(self, fault: psycopg.Error) -> str:
        first = (fault.diag.message_primary or str(fault)).strip().partition("\n")[0]
        return self.address.clean(first) or type(fault).__name__


def one_row(connection: Connection, query: str, values: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The row of a query that always has one."""
    row = connection.execute(query.encode(), values).fetchone()
    if row is None:
        raise BertsmithError(f"the database answered with nothing to: {query}")
    return row


def _check_encoding(connection: Connection, address: Address) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigError(
            f"{address.shown}: the encoding of the database is {encoding}, which cannot hold every "
            "text; create a database with the encoding UTF8"
        )


def _holder(pid: int, name: str) -> str:
    """The process that a connection's name tells, or that of the server."""
    found = re.match(r"bertsmith (\d+)@(\S+)", name)
    return f"process {found[1]} on {found[2]}" if found else f"server process {pid}"
