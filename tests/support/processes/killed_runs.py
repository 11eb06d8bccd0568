"""A training that is killed at random steps of the file system, and run again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any


def model_bytes(folder: Path) -> dict[str, bytes]:
    """Everything but logs and checkpoints."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and "checkpoints" not in path.parts
        and path.name not in ("log.jsonl", "result.json", "run.lock")
    }


def assert_kills_change_nothing(
    run: Callable[..., dict[str, Any]], place: Path, trials: int
) -> dict[str, bytes]:
    """Kill each trial twice, then let it end: the bytes of a run that nobody disturbed.

    `run` takes a folder and `kill_at`, the step of the file system at which the process kills
    itself: seconds would hit nothing as soon as the machine is faster than in the first run.
    """
    first = run(place / "straight")
    assert first["code"] == 0, first["error"]
    steps, straight = first["points"], model_bytes(place / "straight")
    rng = random.Random(3)
    for number in range(trials):
        folder = place / str(number)
        assert run(folder, kill_at=rng.randint(1, steps))["code"] == -9
        assert run(folder, kill_at=rng.randint(1, steps))["code"] in (-9, 0)  # fewer are left
        ended = run(folder)
        assert ended["code"] == 0, ended["error"]
        assert model_bytes(folder) == straight
        assert not [path for path in folder.rglob(".*") if path.name != ".lock"]
    return straight
