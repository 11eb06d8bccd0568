"""A file that cannot be read: what is wrong, and which one was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertsmith.errors import InputFileError
from bertsmith.files.streams import ByteStream, unreadable
from bertsmith.labeled import read_examples
from bertsmith.labeled.split.splits import load_record
from bertsmith.labeled.texts import read_texts


@pytest.mark.parametrize(
    "read", [read_examples, load_record, ByteStream, lambda p: list(read_texts(p))]
)
def test_a_name_with_a_typo_brings_the_nearest_one(read, tmp_path: Path) -> None:
    (tmp_path / "reviews.tsv").write_text("good\tx\n")
    with pytest.raises(InputFileError) as told:
        read(tmp_path / "reveiws.tsv")
    assert "cannot read" in str(told.value)
    assert str(told.value).endswith(f"did you mean {tmp_path / 'reviews.tsv'}?")


def test_a_packed_file_is_found_by_the_name_of_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "train.tsv.gz").write_bytes(b"")
    assert "did you mean" in str(unreadable(tmp_path / "train.tsv", FileNotFoundError()))


def test_no_name_is_made_up(tmp_path: Path) -> None:
    (tmp_path / "reviews.tsv").write_text("good\tx\n")
    for path, fault in (
        (tmp_path / "other.csv", FileNotFoundError(2, "No such file or directory")),
        (tmp_path / "missing" / "reviews.tsv", FileNotFoundError(2, "No such file or directory")),
        (tmp_path / "reveiws.tsv", PermissionError(13, "Permission denied")),
    ):
        assert str(unreadable(path, fault)) == f"cannot read {path}: {fault.strerror}"
