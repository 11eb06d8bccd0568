"""Tests of the loop run on one thread: equal bits need equal threads, and they are tiny."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from rank_client import RankServer


@pytest.fixture(scope="session")
def forks() -> Iterator[RankServer]:
    """Groups of ranks, forked from one process that has imported all they need."""
    server = RankServer()
    yield server
    server.close()
