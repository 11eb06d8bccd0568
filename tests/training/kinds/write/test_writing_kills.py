"""SIGKILL at any step of training to write: run again, it ends in the same bytes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fork_client import ForkServer
from killed_runs import assert_kills_change_nothing

pytestmark = [pytest.mark.reliability, pytest.mark.slow]
LONG = bool(os.environ.get("BERTSMITH_LONG"))
SECTIONS: dict[str, Any] = {
    "encoder": {"dropout": 0.1},
    "plan": {"steps": 16, "batch": 8, "micro_tokens": 60, "evaluations": 4},
    "save": {"every": 4, "seconds": None},
}


@pytest.mark.parametrize("task", ["write", "similar"])
def test_killed_at_random_steps(task: str, forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    def run(folder: Path, **more: Any) -> dict[str, Any]:
        return forks.run("write", model=tiny, jobs=[[str(folder), task, SECTIONS]], **more)

    straight = assert_kills_change_nothing(run, tmp_path, 20 if LONG else 2)
    assert "model.safetensors" in straight
