"""A split as a small file next to the data: the same rows on each side next time, or an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from bertsmith.config import Settings
from bertsmith.errors import InputFileError
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.digest import file_digest
from bertsmith.files.streams import unreadable
from bertsmith.labeled.example import Example
from bertsmith.labeled.split.stratify import Shares

LARGEST = 200_000_000  # bytes
CHUNK = 1 << 20


class SplitRecord(Settings):
    """Which rows of a file are for development and testing; all others are for training."""

    file: str
    sha256: str
    rows: int
    seed: int
    shares: Shares
    key: str
    """What the rows are named by: "line", "id", or "row", their number from 0."""
    dev: tuple[int | str, ...]
    test: tuple[int | str, ...]

    def save(self, path: Path) -> None:
        """Write the record, whole or not at all."""
        text = json.dumps(self.model_dump(mode="json"), ensure_ascii=False)
        write_staged(path, text.encode("utf-8", "surrogatepass") + b"\n")


def make_record(
    path: Path, examples: Sequence[Example], whose: Sequence[int], *, seed: int, shares: Shares
) -> SplitRecord:
    """The record of a split; rows are named by what tells them apart."""
    key = key_of(examples)
    names = names_of(examples, key)
    return SplitRecord(
        file=path.name,
        sha256=file_digest(path),
        rows=len(examples),
        seed=seed,
        shares=shares,
        key=key,
        dev=tuple(name for name, part in zip(names, whose, strict=True) if part == 1),
        test=tuple(name for name, part in zip(names, whose, strict=True) if part == 2),
    )


def key_of(examples: Sequence[Example]) -> str:
    """Lines where each row has its own, else ids, else the numbers of rows."""
    for key in ("line", "id"):
        names = names_of(examples, key)
        if len(set(names)) == len(names):
            return key
    return "row"


def names_of(examples: Sequence[Example], key: str) -> list[int | str]:
    """What the rows are called by a key."""
    if key == "line":
        return [example.line for example in examples]
    return [example.id for example in examples] if key == "id" else list(range(len(examples)))


def load_record(path: Path) -> SplitRecord:
    """A saved split."""
    try:
        if path.stat().st_size > LARGEST:
            raise InputFileError(f"{path} is no saved split: it has {path.stat().st_size:,} bytes")
        return SplitRecord.model_validate_json(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(str(part) for part in fault["loc"]) or "the document"
        raise InputFileError(
            f"{path} is no saved split ({where}: {fault['msg']}); delete it to make a new one"
        ) from None


def recalled(
    record: SplitRecord, saved: Path, path: Path, examples: Sequence[Example]
) -> list[int]:
    """0, 1 or 2 for each example as the record says; refused if the file is another one."""
    if (digest := file_digest(path)) != record.sha256:
        raise InputFileError(
            f"{path} has changed since {saved} was made (sha256 {record.sha256[:12]}..., now "
            f"{digest[:12]}...); bring the old file back, or delete {saved.name} to split anew: "
            "results before and after are then not comparable"
        )
    names = names_of(examples, record.key)
    dev, test = set(record.dev), set(record.test)
    unknown = (dev | test) - set(names)
    if unknown or len(names) != record.rows:
        raise InputFileError(
            f"{saved} was made from {record.rows:,} rows of {path}, now {len(names):,} are read; "
            "read it with the settings of that time, or delete it to split anew"
        )
    return [1 if name in dev else 2 if name in test else 0 for name in names]
