"""One thread: equal bits need equal threads. One process forks trainings for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from line_server import LineServer
from tiny_sentences import tiny_sentence_folder


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def trainings() -> Iterator[LineServer]:
    server = LineServer(Path(__file__).with_name("sentence_server.py"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model folder, untrained."""
    return tiny_sentence_folder(tmp_path_factory.mktemp("models") / "tiny")
