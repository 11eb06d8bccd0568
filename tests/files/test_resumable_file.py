"""A file that grows over several runs: safe rows stay, the rest is cut, keys are kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertsmith.errors import LockedError, WriteError
from bertsmith.files.resumable_file import CONTENT, GrowingFile


def test_what_is_safe_stays_and_what_is_torn_is_cut(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.tally["cut"] = 2
        file.append(b"one\n", 1)
        file.append(b"two\n", 1)
    assert not out.exists()
    with (tmp_path / ".out.txt.partial" / CONTENT).open("ab") as torn:
        torn.write(b"bytes that no journal counts")
    with GrowingFile(out, "a") as file:
        assert (file.rows, file.tally, file.replaced) == (2, {"cut": 2}, False)
        file.append(b"three\n", 1)
        file.finish()
    assert out.read_bytes() == b"one\ntwo\nthree\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_work_of_another_kind_begins_anew(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"of a\n", 1)
    with GrowingFile(out, "b") as file:
        assert (file.rows, file.replaced) == (0, True)
        file.append(b"of b\n", 1)
        file.finish()
    assert out.read_bytes() == b"of b\n"


@pytest.mark.parametrize("damage", ["no json", '{"key": "a"}', '{"key": "a", "rows": "1"}'])
def test_a_damaged_journal_begins_anew(tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"one\n", 1)
    (tmp_path / ".out.txt.partial" / "journal.json").write_text(damage)
    with GrowingFile(out, "a") as file:
        assert file.rows == 0
        file.append(b"two\n", 1)
        file.finish()
    assert out.read_bytes() == b"two\n"


def test_content_that_is_shorter_than_its_journal_begins_anew(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"one\n", 1)
    (tmp_path / ".out.txt.partial" / CONTENT).write_bytes(b"o")
    with GrowingFile(out, "a") as file:
        assert file.rows == 0


def test_two_runs_do_not_share_a_file(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with (
        GrowingFile(out, "a"),
        pytest.raises(LockedError, match="another file"),
        GrowingFile(out, "a"),
    ):
        pass


def test_a_place_that_cannot_hold_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="no folder"), GrowingFile(tmp_path / "x" / "y", "a"):
        pass
    with pytest.raises(WriteError, match="not a regular file"), GrowingFile(tmp_path, "a"):
        pass
    assert list(tmp_path.iterdir()) == []
