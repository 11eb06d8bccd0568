"""One thread: equal bits need equal threads. One process forks trainings for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from line_server import LineServer
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from tiny_writing import tiny_writing_folder


@pytest.fixture(scope="session")
def trainings() -> Iterator[LineServer]:
    server = LineServer("writing_server.py")
    yield server
    server.close()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny masked LM, untrained."""
    return tiny_writing_folder(tmp_path_factory.mktemp("models") / "tiny")
