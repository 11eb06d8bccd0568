"""SIGKILL at any step of sentence training: run again, it ends in the same bytes."""

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
    "plan": {"steps": 16, "batch": 12, "micro_tokens": 60, "evaluations": 4},
    "save": {"every": 4, "seconds": None},
}


def test_killed_at_random_steps(forks: ForkServer, tiny: str, tmp_path: Path) -> None:
    def run(folder: Path, **more: Any) -> dict[str, Any]:
        order: list[Any] = [[str(folder), "simcse", "texts", SECTIONS]]
        return forks.run("sentences", model=tiny, jobs=order, **more)

    straight = assert_kills_change_nothing(run, tmp_path, 20 if LONG else 3)
    assert "model.safetensors" in straight
    assert "1_Pooling/config.json" in straight
