"""One process forks the toy run for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from toy_client import ToyServer
from toy_training import final_state


@pytest.fixture(scope="session")
def server() -> Iterator[ToyServer]:
    server = ToyServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def straight(server: ToyServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The end of a run that was left alone, its length in seconds and in file-system steps."""
    folder = tmp_path_factory.mktemp("straight")
    ended = server.run(folder)
    assert ended.code == 0, ended.error
    assert ended.points is not None
    return {"end": final_state(folder), "seconds": ended.seconds, "points": ended.points}
