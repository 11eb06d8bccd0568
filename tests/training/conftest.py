"""Tests of the loop run on one thread: equal bits need equal threads, and they are tiny."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from rank_client import RankServer


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def forks() -> Iterator[RankServer]:
    """Groups of ranks, forked from one process that has imported all they need."""
    server = RankServer()
    yield server
    server.close()
