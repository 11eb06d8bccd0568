"""SIGKILL at any moment: the resumed run ends with the same bits as one that was left alone."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from fork_client import ForkServer
from toy_training import final_state

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))


def assert_ends_alike(forks: ForkServer, folder: Path, straight: dict[str, Any]) -> None:
    """The run goes on to the end of one that was left alone, and leaves nothing else behind."""
    ended = forks.run("toy", folder=folder)
    assert ended["code"] == 0, ended["error"]
    assert final_state(folder) == straight["end"], folder.name
    assert not list(folder.rglob(".*"))


def test_killed_at_random_moments(
    forks: ForkServer, straight: dict[str, Any], tmp_path: Path
) -> None:
    rng = random.Random(1)
    for number in range(200 if LONG else 20):
        folder = tmp_path / str(number)
        forks.kill_after(rng.random() * straight["seconds"], "toy", folder=folder)
        assert_ends_alike(forks, folder, straight)


def test_killed_at_every_kind_of_step_of_saving(
    forks: ForkServer, straight: dict[str, Any], tmp_path: Path
) -> None:
    points = straight["points"]
    chosen = range(1, points + 1) if LONG else range(1, points + 1, max(1, points // 20))
    for point in chosen:
        folder = tmp_path / str(point)
        killed = forks.run("toy", folder=folder, kill_at=point)
        assert killed["code"] == -9, (point, killed)
        assert_ends_alike(forks, folder, straight)


def test_killed_again_and_again_in_one_run(
    forks: ForkServer, straight: dict[str, Any], tmp_path: Path
) -> None:
    rng = random.Random(2)
    for number in range(20 if LONG else 1):
        folder = tmp_path / str(number)
        for _ in range(10):
            before = newest(folder)
            forks.kill_after(rng.random() * 0.7 * straight["seconds"], "toy", folder=folder)
            assert newest(folder) >= before
        assert_ends_alike(forks, folder, straight)


def newest(folder: Path) -> int:
    names = [path.name for path in (folder / "checkpoints").glob("step-*")]
    return max((int(name.removeprefix("step-")) for name in names), default=0)
