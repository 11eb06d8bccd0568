"""SIGKILL at any moment of `index build`: the same build again has the same vectors and texts."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from fork_client import ForkServer

from bertsmith.search.folder.store import FolderStore

pytestmark = pytest.mark.reliability
pytest.importorskip("usearch")
LONG = bool(os.environ.get("BERTSMITH_LONG"))


def build(forks: ForkServer, folder: Path, kill_at: int = 0) -> dict[str, object]:
    return forks.run("index", folder=folder, kill_at=kill_at)


def kept(folder: Path) -> dict[str, bytes]:
    """Vectors, texts and what is derived from them by rule; the graph depends on threads."""
    files = (p for p in sorted((folder / "segments").rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@pytest.fixture(scope="module")
def straight(
    forks: ForkServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, bytes], int, float]:
    folder = tmp_path_factory.mktemp("straight") / "index"
    start = time.perf_counter()
    ended = build(forks, folder)
    assert ended["code"] == 0, ended["error"]
    assert isinstance(ended["points"], int)
    return kept(folder), ended["points"], time.perf_counter() - start


def assert_ends_alike(forks: ForkServer, folder: Path, wanted: dict[str, bytes]) -> None:
    ended = build(forks, folder)
    assert ended["code"] == 0, ended["error"]
    assert kept(folder) == wanted
    with FolderStore.open(folder) as store:
        assert store.rows == 1_500
        assert store.manifest.graph is not None
        assert store.check()
    left = {p.name for p in folder.iterdir()} - {"lock", "segments", "index.json"}
    assert len(left) == 1, left  # the graph


def test_killed_at_file_system_steps(
    forks: ForkServer, straight: tuple[dict[str, bytes], int, float], tmp_path: Path
) -> None:
    wanted, points, _ = straight
    chosen = range(1, points + 1) if LONG else range(2, points + 1, max(1, points // 12))
    for point in chosen:
        folder = tmp_path / str(point)
        assert build(forks, folder, kill_at=point)["code"] == -signal.SIGKILL
        assert_ends_alike(forks, folder, wanted)


def test_killed_at_random_moments(
    forks: ForkServer, straight: tuple[dict[str, bytes], int, float], tmp_path: Path
) -> None:
    wanted, _, seconds = straight
    chance = random.Random(3)
    for number in range(50 if LONG else 6):
        folder = tmp_path / str(number)
        forks.kill_after(chance.random() * seconds, "index", folder=folder)
        assert_ends_alike(forks, folder, wanted)
