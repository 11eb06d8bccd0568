"""The toy run lives beside the tests of the loop; one process forks it for all tests here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))

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
