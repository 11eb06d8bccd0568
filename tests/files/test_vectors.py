"""Vectors on disk: whole or not at all, readable by numpy, never a trace of a failed run."""

from __future__ import annotations

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from bertsmith.errors import WriteError
from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.vectors import VectorWriter, check_target


def blocks(count: int = 3, width: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n + 1, width)).astype(np.float32) for n in range(count)]


def save(path: Path, parts: list[np.ndarray], width: int = 5) -> None:
    with VectorWriter(path, width) as writer:
        for part in parts:
            writer.append(part)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_numpy_reads_what_was_written(tmp_path, count) -> None:
    parts = blocks(count)
    save(tmp_path / "v.npy", parts)
    loaded = np.load(tmp_path / "v.npy", mmap_mode="r")
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, np.concatenate([np.empty((0, 5), np.float32), *parts]))
    assert [p.name for p in tmp_path.iterdir()] == ["v.npy"]


def test_text_forms_bring_every_float_back(tmp_path) -> None:
    parts = [*blocks(), np.array([[1e-38, -0.1, 3.4e38, 0, 1 / 3]], np.float32)]
    expected = np.concatenate(parts)
    save(tmp_path / "v.tsv", parts)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "v.tsv", np.float32), expected)
    save(tmp_path / "v.jsonl", parts)
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    np.testing.assert_array_equal(np.array(rows, np.float32), expected)


def test_an_existing_file_is_replaced_only_by_a_whole_one(tmp_path) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with VectorWriter(path, 5) as writer:
            writer.append(blocks()[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    save(path, blocks())
    assert np.load(path).shape == (6, 5)


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_full_disk_is_named_and_leaves_the_old_file(tmp_path, monkeypatch, code, unnamed) -> None:
    if not unnamed:
        monkeypatch.setattr("bertsmith.files.atomic_file._UNNAMED", 0)
    path = tmp_path / "v.npy"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WriteError) as caught:
        save(path, blocks())
    assert str(path) in str(caught.value)
    assert "untouched" in str(caught.value)
    assert ("248 bytes" in str(caught.value)) == (code == errno.ENOSPC)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_bytes_are_on_disk_before_the_name_and_the_folder_after(tmp_path, monkeypatch) -> None:
    events = []
    fsync, replace = os.fsync, Path.replace

    def see_fsync(descriptor: int) -> None:
        events.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def see_replace(self: Path, target: Path) -> Path:
        events.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", see_fsync)
    monkeypatch.setattr(Path, "replace", see_replace)
    save(tmp_path / "v.npy", blocks())
    assert events == ["file", "rename", "folder"]


@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_mode_follows_the_umask(tmp_path, monkeypatch, mask, mode, unnamed) -> None:
    if not unnamed:
        monkeypatch.setattr("bertsmith.files.atomic_file._UNNAMED", 0)
    before = os.umask(mask)
    try:
        save(tmp_path / "v.npy", blocks())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "v.npy").stat().st_mode) == mode


def test_targets_that_cannot_be_are_refused(tmp_path) -> None:
    with pytest.raises(WriteError, match=r"\.npy"):
        check_target(tmp_path / "v.bin")
    with pytest.raises(WriteError, match="there is no folder"):
        StagedFile(tmp_path / "none" / "v.npy")
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(WriteError, match="not a regular file"):
        StagedFile(tmp_path / "d.npy")


def test_a_link_keeps_pointing_at_the_file_that_was_replaced(tmp_path) -> None:
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "link.npy").symlink_to("real.npy")
    save(tmp_path / "link.npy", blocks())
    assert (tmp_path / "link.npy").is_symlink()
    assert np.load(tmp_path / "real.npy").shape == (6, 5)


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="unnamed files are a Linux feature")
def test_a_killed_process_leaves_nothing_behind(tmp_path) -> None:
    script = textwrap.dedent("""
        import sys, time, numpy as np
        from pathlib import Path
        from bertsmith.files.vectors import VectorWriter
        with VectorWriter(Path(sys.argv[1]), 5) as writer:
            writer.append(np.zeros((100_000, 5), np.float32))
            print("ready", flush=True)
            time.sleep(60)
    """)
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "v.npy")], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert list(tmp_path.iterdir()) == []
