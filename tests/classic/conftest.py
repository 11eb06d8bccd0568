"""Fixtures of the models that came before BERT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from line_server import LineServer


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Two threads wait for each other at every small step, minutes of it on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def neural_trainings() -> Iterator[LineServer]:
    """A process that trains neural language models and can be killed at any step."""
    server = LineServer(Path(__file__).with_name("neural_server.py"))
    yield server
    server.close()
