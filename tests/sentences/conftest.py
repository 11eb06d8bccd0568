"""One thread: equal bits need equal threads. One process forks trainings for all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from line_server import LineServer
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here
from tiny_sentences import tiny_sentence_folder


@pytest.fixture(scope="session")
def trainings() -> Iterator[LineServer]:
    server = LineServer("sentence_server.py")
    yield server
    server.close()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model folder, untrained."""
    return tiny_sentence_folder(tmp_path_factory.mktemp("models") / "tiny")
