"""A server that is restarted or killed in the middle of a build: every row exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from import_path import import_path
from numpy.typing import NDArray
from postgres_server import PostgresServer
from toy_index import ToyEncoder, plan, source_of, texts

from bertsmith.errors import DatabaseError
from bertsmith.search import index as building
from bertsmith.search.index import add_rows, new_store, open_store
from bertsmith.search.postgres import session
from bertsmith.search.postgres.address import Address
from bertsmith.search.postgres.session import Session

pytestmark = pytest.mark.reliability
ROWS = texts(3_000)
BLOCK = 100


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "BLOCK", BLOCK)
    monkeypatch.setattr(session, "LONGEST_PAUSE", 0.2)


class Interrupted(ToyEncoder):
    """Calls something before some of the blocks are encoded."""

    def __init__(self, at: dict[int, object]) -> None:
        self.calls = 0
        self.at = at

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        if self.calls in self.at:
            self.at[self.calls]()  # type: ignore[operator]
        return super().texts(texts)


def assert_complete(address: str) -> None:
    with open_store(address) as store:
        assert [(row.text, row.meta) for row in store.texts()] == ROWS
        assert store.matching(()) == list(range(len(ROWS)))
        assert store.check()
    with Session(Address.parse(address)) as one:
        table = Address.parse(address).table
        count = one.run(lambda c: c.execute(f'SELECT count(*) FROM "{table}"').fetchone())
        assert count == (len(ROWS),)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_server_that_goes_and_comes_back_between_blocks(
    postgres: PostgresServer, way: str
) -> None:
    def away() -> None:
        getattr(postgres, way)()
        postgres.start()

    encoder = Interrupted({7: away})
    address = postgres.address(f"between_{way}")
    with new_store(address, plan(), source_of(ROWS)) as writer:
        assert add_rows(writer, ROWS, encoder, "rows") == len(ROWS)
    assert_complete(address)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_server_that_goes_and_comes_back_at_any_moment(
    postgres: PostgresServer, way: str
) -> None:
    """While blocks are sent and committed, as fast as the server takes them."""
    address = postgres.address(f"moment_{way}")
    encoder = ToyEncoder()
    vectors = encoder.texts([text for text, _ in ROWS])
    known = {text: vector for (text, _), vector in zip(ROWS, vectors, strict=True)}
    encoder.texts = lambda given: np.stack([known[text] for text in given])  # type: ignore
    halfway = threading.Event()

    def disturb() -> None:
        for _ in range(2):
            halfway.wait(60)
            getattr(postgres, way)()
            postgres.start()
            halfway.clear()

    other = threading.Thread(target=disturb)
    other.start()
    with new_store(address, plan(), source_of(ROWS)) as writer:
        add_rows(
            writer,
            ROWS,
            encoder,
            "rows",
            progress=lambda done: halfway.set() if done in (500, 2_000) else None,
        )
        halfway.set()
        other.join()
    assert_complete(address)


def test_a_server_that_stays_away(postgres: PostgresServer) -> None:
    address = postgres.address("stays_away", more="&wait=0.5")
    encoder = Interrupted({4: postgres.stop})
    start = time.monotonic()
    with (
        new_store(address, plan(), source_of(ROWS)) as writer,
        pytest.raises(
            DatabaseError,
            match=r"the server did not answer for \d seconds? .*; 300 rows of the source are safe; "
            "run the same command when it is back",
        ),
    ):
        add_rows(writer, ROWS, encoder, "rows")
    assert time.monotonic() - start < 30
    postgres.start()
    again = Interrupted({})
    with new_store(address, plan(), source_of(ROWS)) as writer:
        assert writer.done == 300
        add_rows(writer, ROWS, again, "rows")
    assert again.calls == len(ROWS) // BLOCK - 3
    assert_complete(address)


def test_a_commit_whose_confirmation_is_lost(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block is there although the client saw an error: it must not be added again."""
    import psycopg

    usual = psycopg.Transaction.__exit__
    left = [2, 9, 14]

    def lost(self, kind, fault, trace):  # type: ignore[no-untyped-def]
        ended = usual(self, kind, fault, trace)
        left[:] = [number - 1 for number in left]
        if 0 in left:
            self.connection.close()
            raise psycopg.OperationalError("the confirmation was lost")
        return ended

    address = postgres.address("lost_commit")
    with new_store(address, plan(), source_of(ROWS)) as writer:
        monkeypatch.setattr(psycopg.Transaction, "__exit__", lost)
        add_rows(writer, ROWS, ToyEncoder(), "rows")
    assert max(left) < 0
    assert_complete(address)
    left[:] = [1]
    with open_store(address) as store:
        left[:] = [1]
        assert store.delete([7]) == 1
        assert store.rows == len(ROWS) - 1


def test_a_search_survives_a_restart(postgres: PostgresServer) -> None:
    address = postgres.address("searched")
    encoder = ToyEncoder()
    with new_store(address, plan(), source_of(ROWS[:50])) as writer:
        add_rows(writer, ROWS[:50], encoder, "rows")
    with open_store(address) as store:
        before = store.search(encoder.queries(["w1 w2"]), 3)
        postgres.stop()
        postgres.start()
        assert store.search(encoder.queries(["w1 w2"]), 3) == before


def test_a_build_that_is_killed_resumes(postgres: PostgresServer) -> None:
    """SIGKILL after the rows of the fifth block were sent, before its journal was."""
    address = postgres.address("killed")
    script = Path(__file__).with_name("killed_writer.py")
    arguments = (address, str(len(ROWS)), str(BLOCK), "6")  # the first one begins the work
    done = subprocess.run(
        [sys.executable, script, *arguments],
        env=os.environ | {"PYTHONPATH": import_path()},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    again = Interrupted({})
    with new_store(address, plan(), source_of(ROWS)) as writer:
        assert writer.done == 4 * BLOCK
        add_rows(writer, ROWS, again, "rows")
    assert again.calls == len(ROWS) // BLOCK - 4
    assert_complete(address)
