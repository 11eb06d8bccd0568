"""SIGKILL at any moment of training to write: run again, it ends in the same bytes."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from line_server import LineServer

pytestmark = [pytest.mark.reliability, pytest.mark.slow]
LONG = bool(os.environ.get("BERTSMITH_LONG"))
SECTIONS: dict[str, Any] = {
    "encoder": {"dropout": 0.1},
    "plan": {"steps": 16, "batch": 8, "micro_tokens": 60, "evaluations": 4},
    "save": {"every": 4, "seconds": None},
}


def model_bytes(folder: Path) -> dict[str, bytes]:
    """Everything but logs and checkpoints."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and "checkpoints" not in path.parts
        and path.name not in ("log.jsonl", "result.json", "run.lock")
    }


@pytest.mark.parametrize("task", ["write", "similar"])
def test_killed_at_random_moments(
    task: str, trainings: LineServer, tiny: str, tmp_path: Path
) -> None:
    def run(folder: Path, **more: Any) -> dict[str, Any]:
        return trainings.ask(model=tiny, jobs=[[str(folder), task, SECTIONS]], **more)

    began = time.monotonic()
    first = run(tmp_path / "straight")
    assert first["codes"] == [0], first["errors"]
    seconds = time.monotonic() - began
    straight = model_bytes(tmp_path / "straight")
    assert "model.safetensors" in straight
    rng = random.Random(3)
    killed = 0
    for number in range(20 if LONG else 2):
        folder = tmp_path / str(number)
        for _ in range(2):
            killed += run(folder, kill=rng.random() * 0.9 * seconds)["codes"] == [-9]
        answer = run(folder)
        assert answer["codes"] == [0], answer["errors"]
        assert model_bytes(folder) == straight
        assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    assert killed > 0
