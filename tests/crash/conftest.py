"""The toy run, left alone."""

from __future__ import annotations

from typing import Any

import pytest
from fork_client import ForkServer
from toy_training import final_state


@pytest.fixture(scope="session")
def straight(forks: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The end of a run that was left alone, its length in seconds and in file-system steps."""
    folder = tmp_path_factory.mktemp("straight")
    ended = forks.run("toy", folder=folder)
    assert ended["code"] == 0, ended["error"]
    assert ended["points"] is not None
    return {"end": final_state(folder), "seconds": ended["seconds"], "points": ended["points"]}
