"""The power goes at any step of a writer: its folder is whole or absent, and can be made again."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from power_loss import PowerLoss, restored
from written_folders import WRITTEN

from bertsmith.files.atomic_folder import result_folder, write_file
from bertsmith.files.folder_hashes import write_hashes

pytestmark = pytest.mark.reliability
LONG = bool(os.environ.get("BERTSMITH_LONG"))
STATES = 1_000 if LONG else 12  # that are read; of many, the last ones
# An index grows in its folder, which is none before it has a manifest.


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_folder_is_whole_or_absent_whatever_was_synced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, read = WRITTEN[kind]
    disk = tmp_path / "disk"
    disk.mkdir()
    with monkeypatch.context() as patch:
        loss = PowerLoss(disk, patch)
        make(disk / "made")
    expected = read(disk / "made")
    states = [state for state in loss.states if "made" in state]
    assert states, "the name of the folder was never on the disk"
    chosen = [states[0], *states[1:][-STATES:]]
    for number, state in enumerate(chosen):
        there = restored(state, tmp_path / f"state{number}") / "made"
        if any(there.iterdir()) and (kind != "index" or (there / "index.json").exists()):
            assert read(there) == expected, (number, sorted(state))
        shutil.rmtree(there.parent)


@pytest.mark.parametrize("kind", ["word-stream", "corpus", "index"])
def test_what_a_crash_left_is_no_hindrance(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, read = WRITTEN[kind]
    disk = tmp_path / "disk"
    disk.mkdir()
    with monkeypatch.context() as patch:
        loss = PowerLoss(disk, patch)
        make(disk / "made")
    expected = read(disk / "made")
    states = [state for state in loss.states if "made" not in state]
    for number in range(0, len(states), 1 if LONG else max(1, len(states) // 4)):
        place = restored(states[number], tmp_path / f"state{number}")
        make(place / "made")
        assert read(place / "made") == expected, (number, sorted(states[number]))


def test_the_config_of_a_result_comes_after_all_else_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        fsync(descriptor)
        events.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))

    def replaced(old: Any, new: Any) -> None:
        replace(old, new)
        events.append(("move", Path(new).name))

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    out = tmp_path / "out"
    out.mkdir()
    with result_folder(out) as staging:
        staging.mkdir()
        for name in ("config.json", "model.safetensors"):
            write_file(staging / name, b"{}")
        write_hashes(staging)
    assert events[-3:] == [("sync", "out"), ("move", "config.json"), ("sync", "out")]
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json",
        "hashes.json",
        "model.safetensors",
    ]
