"""Fixtures of the models that came before BERT."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from line_server import LineServer
from one_thread import one_thread  # noqa: F401 - a fixture of all tests here


@pytest.fixture(scope="session")
def neural_trainings() -> Iterator[LineServer]:
    """A process that trains neural language models and can be killed at any step."""
    server = LineServer("neural_server.py")
    yield server
    server.close()
