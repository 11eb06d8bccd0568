"""Folders that grow hidden: placed by one rename, resumed after a kill, compared if there."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertsmith.errors import LockedError, WriteError
from bertsmith.files.growing_folder import GrowingFolder

MANIFEST = "about.json"
STARTS = {"bytes.bin": b"."}


def growing(target: Path) -> GrowingFolder:
    return GrowingFolder(target, manifest=MANIFEST, holds="collection", instead="folder")


def finish(folder: GrowingFolder) -> None:
    """Put what has grown into a folder of its own, and that in place."""
    made = folder.path / "made"
    made.mkdir()
    (folder.path / "bytes.bin").rename(made / "bytes.bin")
    (made / MANIFEST).write_text("{}")
    folder.place(made)


def interrupted(target: Path, *, saved: bool) -> None:
    with growing(target) as folder:
        files = folder.grow("key", STARTS)
        files.append("bytes.bin", b"abc")
        if saved:
            files.save({"blocks": 1})
        files.append("bytes.bin", b"lost")
        raise KeyboardInterrupt


def test_a_folder_appears_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    with growing(tmp_path / "out") as folder:
        files = folder.grow("key", STARTS)
        files.append("bytes.bin", b"abc")
        files.save({"blocks": 1})
        assert not (tmp_path / "out").exists()
        files.finish()
        finish(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "bytes.bin").read_bytes() == b".abc"


def test_what_was_saved_before_an_error_is_resumed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "out", saved=True)
    with growing(tmp_path / "out") as folder:
        files = folder.grow("key", STARTS)
        assert files.state == {"blocks": 1}
        assert files.finish()["bytes.bin"]["size"] == 4


def test_without_a_journal_an_error_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "out", saved=False)
    assert list(tmp_path.iterdir()) == []


def test_a_hidden_folder_that_a_kill_after_the_rename_left_is_removed(tmp_path: Path) -> None:
    with growing(tmp_path / "out") as folder:
        folder.grow("key", STARTS).finish()
        finish(folder)
    folder.path.mkdir()
    folder.journal.write_text("{}")
    with growing(tmp_path / "out") as again:
        assert again.finished
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_finished_folder_is_looked_at_without_writing_next_to_it(tmp_path: Path) -> None:
    with growing(tmp_path / "out") as folder:
        folder.grow("key", STARTS).finish()
        finish(folder)
    with growing(tmp_path / "out") as again:
        assert again.finished
        assert not again.path.exists()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with growing(tmp_path / "out"), pytest.raises(LockedError, match="another build"):
        growing(tmp_path / "out").__enter__()


def test_a_process_that_waited_for_the_lock_sees_what_the_other_one_finished(
    tmp_path: Path,
) -> None:
    late = growing(tmp_path / "out")
    with growing(tmp_path / "out") as folder:
        folder.grow("key", STARTS).finish()
        finish(folder)
    with late as folder:
        assert folder.finished


@pytest.mark.parametrize("name", ["taken", ".."])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(WriteError, match="exists and is no collection"):
        growing(tmp_path / "taken" / ".." / name)
