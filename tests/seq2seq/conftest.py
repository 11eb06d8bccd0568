"""One thread: equal bits need equal threads. One process forks trainings for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from line_server import LineServer
from tiny_writing import tiny_writing_folder


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def trainings() -> Iterator[LineServer]:
    server = LineServer(Path(__file__).with_name("writing_server.py"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny masked LM, untrained."""
    return tiny_writing_folder(tmp_path_factory.mktemp("models") / "tiny")
