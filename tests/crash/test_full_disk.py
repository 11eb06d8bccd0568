"""A disk that is full or fails: a clear message, code 74, the last good state, an identical end."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fork_client import ForkServer
from toy_training import final_state

from bertsmith.training.checkpoints.checkpoint import Checkpoints
from bertsmith.training.checkpoints.checkpoint_files import verify

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_failing_step_of_saving_never_costs_a_good_checkpoint(
    forks: ForkServer, straight: dict[str, Any], tmp_path: Path, fault: int
) -> None:
    points = straight["points"]
    stride = 1 if LONG else points // 6
    for point in range(1 + fault % 7, points + 1, stride):
        folder = tmp_path / str(point)
        ended = forks.run("toy", folder=folder, fail_at=point, fail_with=fault)
        assert ended["code"] in (0, 74), (point, ended)  # 0: a file that could not be removed
        if ended["code"] == 74:
            assert ended["error"].startswith("WriteError: "), ended["error"]
            assert str(folder) in ended["error"]
        checkpoints = Checkpoints(folder / "checkpoints")
        for step in checkpoints.steps():
            verify(checkpoints.path(step))  # each one that is there is whole
        assert forks.run("toy", folder=folder)["code"] == 0
        assert final_state(folder) == straight["end"], point


def test_a_file_that_may_not_grow_ends_with_path_needed_and_free(
    forks: ForkServer, tmp_path: Path
) -> None:
    ended = forks.run("toy", folder=tmp_path / "run", file_limit=3_000)
    assert ended["code"] == 74
    assert "step-00000005" in ended["error"]
    assert "bytes needed" in ended["error"]
    assert "free" in ended["error"]
    assert Checkpoints(tmp_path / "run" / "checkpoints").newest() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize(("megabytes", "kept"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 2)])
def test_a_small_disk_keeps_the_last_good_state(
    forks: ForkServer, tmp_path: Path, megabytes: int, kept: int
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let root mount")
    try:
        full = forks.run(
            "toy", folder=disk / "run", heavy=300_000
        )  # 1.2 MB of weights, then of averages
        assert full["code"] == 74, full
        for part in ("no room for", "bytes needed", "free"):
            assert part in full["error"]
        found = Checkpoints(disk / "run" / "checkpoints")
        assert len(found.steps()) == kept
        for step in found.steps():
            verify(found.path(step))
        larger = ["mount", "-o", "remount,size=64m", str(disk)]
        subprocess.run(larger, check=True, capture_output=True)
        assert forks.run("toy", folder=disk / "run", heavy=300_000)["code"] == 0
        assert forks.run("toy", folder=disk / "straight", heavy=300_000)["code"] == 0
        assert final_state(disk / "run") == final_state(disk / "straight")
    finally:
        subprocess.run(["umount", str(disk)], check=True, capture_output=True)
