"""A file that grows over several runs: safe rows stay, the rest is cut, keys are kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertsmith.errors import LockedError, WriteError
from bertsmith.files.resumable_file import CONTENT, GrowingFile


def test_what_is_safe_stays_and_what_is_torn_is_cut(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"one\n", {"rows": 1})
        file.append(b"two\n", {"rows": 2, "cut": 2})
    assert not out.exists()
    with (tmp_path / ".out.txt.partial" / CONTENT).open("ab") as torn:
        torn.write(b"bytes that no journal counts")
    with GrowingFile(out, "a") as file:
        assert (file.state, file.replaced) == ({"rows": 2, "cut": 2}, False)
        file.append(b"three\n", {"rows": 3})
        file.finish()
    assert out.read_bytes() == b"one\ntwo\nthree\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_work_of_another_kind_begins_anew(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"of a\n", {"rows": 1})
    with GrowingFile(out, "b") as file:
        assert (file.state, file.replaced) == ({}, True)
        file.append(b"of b\n", {"rows": 1})
        file.finish()
    assert out.read_bytes() == b"of b\n"


@pytest.mark.parametrize("damage", ["no json", '{"key": "a"}', '{"key": "a", "rows": "1"}'])
def test_a_damaged_journal_begins_anew(tmp_path: Path, damage: str) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"one\n", {"rows": 1})
    (tmp_path / ".out.txt.partial" / "journal.json").write_text(damage)
    with GrowingFile(out, "a") as file:
        assert file.state == {}
        file.append(b"two\n", {"rows": 1})
        file.finish()
    assert out.read_bytes() == b"two\n"


def test_content_that_is_shorter_than_its_journal_begins_anew(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"one\n", {"rows": 1})
    (tmp_path / ".out.txt.partial" / CONTENT).write_bytes(b"o")
    with GrowingFile(out, "a") as file:
        assert file.state == {}


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


def test_the_start_of_a_file_is_written_once_wherever_a_run_was_killed(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    staged = tmp_path / ".out.csv.partial"
    with GrowingFile(out, "a", b"header\n") as file:
        file.append(b"one\n", {"rows": 1})
        (staged / "journal.json").rename(tmp_path / "later")
        (staged / CONTENT).write_bytes(b"header\nhalf a")  # as if killed before the first journal
        (staged / "journal.json").write_bytes(b"")
    with GrowingFile(out, "a", b"header\n") as file:
        assert file.state == {}
        file.append(b"one\n", {"rows": 1})
        file.finish()
    assert out.read_bytes() == b"header\none\n"


def test_nothing_worth_resuming_is_not_left_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), GrowingFile(tmp_path / "out.csv", "a", b"header\n"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_changed_since_the_journal_are_not_trusted(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with GrowingFile(out, "a") as file:
        file.append(b"one\n", {"rows": 1})
    (tmp_path / ".out.txt.partial" / CONTENT).write_bytes(b"0ne\n")
    with GrowingFile(out, "a") as file:
        assert (file.state, file.replaced) == ({}, False)
