"""One worker a folder: who holds it is named, and a holder that dies lets go."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bertsmith.errors import LockedError, WriteError
from bertsmith.files.folder_lock import NAME, FolderLock

HOLDER = """
import sys, time
from pathlib import Path
from bertsmith.files.folder_lock import FolderLock
with FolderLock(Path(sys.argv[1]), work="run", instead="folder"):
    print("held", flush=True)
    time.sleep(60)
"""


def run_lock(folder: Path) -> FolderLock:
    return FolderLock(folder, work="run", instead="folder")


def test_the_holder_is_named_in_the_words_of_the_caller(tmp_path) -> None:
    with (
        run_lock(tmp_path),
        pytest.raises(LockedError) as caught,
        FolderLock(tmp_path, work="build", instead="--out"),
    ):
        pytest.fail("two hold one folder")
    assert str(caught.value) == (
        f"another build is at work in {tmp_path} (process {os.getpid()} on {socket.gethostname()});"
        " wait for it, stop it, or give another --out"
    )
    assert caught.value.exit_code == 73
    with run_lock(tmp_path):
        assert json.loads((tmp_path / NAME).read_text())["pid"] == os.getpid()
    assert (tmp_path / NAME).read_bytes() == b""


def test_a_killed_holder_lets_go_and_is_remembered(tmp_path, caplog) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(LockedError, match=f"process {child.pid} on "), run_lock(tmp_path):
        pytest.fail("two hold one folder")
    child.send_signal(signal.SIGKILL)
    child.wait()
    with caplog.at_level(logging.INFO, logger="bertsmith.files.folder_lock"), run_lock(tmp_path):
        assert f"ended without notice (process {child.pid} on " in caplog.text


def test_a_lock_file_that_was_taken_away_meanwhile_is_not_held(tmp_path, monkeypatch) -> None:
    """Between opening and locking, the last holder removes its folder: that lock guards nothing."""
    folder = tmp_path / "work"
    real, calls = FolderLock._take, []

    def late(lock: FolderLock, before: str) -> None:
        calls.append(before)
        if len(calls) == 1:
            shutil.rmtree(folder)
        real(lock, before)

    monkeypatch.setattr(FolderLock, "_take", late)
    with run_lock(folder):
        assert len(calls) == 2
        assert json.loads((folder / NAME).read_text())["pid"] == os.getpid()


def test_a_folder_that_is_always_taken_away_is_in_use(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "work"
    monkeypatch.setattr(FolderLock, "_take", lambda lock, before: shutil.rmtree(folder))
    with pytest.raises(LockedError, match="did not say its name"), run_lock(folder):
        pytest.fail("held")


def test_the_lock_goes_last_when_its_folder_is_removed(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "work"
    real, order = os.unlink, []

    def note(path, **more):
        order.append(Path(os.fsdecode(path)).name)
        real(path, **more)

    with run_lock(folder) as lock:
        for name in ("a.bin", "z.bin", "part/inner.bin"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"1")
        (folder / "link").symlink_to(tmp_path)
        monkeypatch.setattr(os, "unlink", note)
        lock.remove_folder()
        monkeypatch.undo()
    assert sorted(order) == ["a.bin", "inner.bin", "link", "lock", "z.bin"]
    assert order[-1] == "lock"
    assert not folder.exists()


def test_a_place_that_cannot_be_locked_is_named(tmp_path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(WriteError, match="cannot lock") as caught, run_lock(tmp_path / "file"):
        pytest.fail("held")
    assert caught.value.exit_code == 74
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / NAME).symlink_to(tmp_path / "file")
    with pytest.raises(WriteError, match="cannot lock"), run_lock(tmp_path / "work"):
        pytest.fail("held")
    assert (tmp_path / "file").read_text() == "no folder"
