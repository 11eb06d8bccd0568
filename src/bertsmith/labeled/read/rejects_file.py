"""The file of rejected rows: written next to the data, and read again once they are repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bertsmith.files.atomic_file import StagedFile
from bertsmith.files.faults import BadRowError
from bertsmith.files.lines import Lines
from bertsmith.files.strict_json import parse_row
from bertsmith.labeled.account import RowAccount
from bertsmith.labeled.example import Example
from bertsmith.labeled.formats import FORMATS
from bertsmith.labeled.formats.objects import string
from bertsmith.labeled.read.reject import Reject, reject_of
from bertsmith.labeled.spec import DataSpec

ENDING = ".rejected.jsonl"
CHUNK = 1 << 18


def rejects_path(path: Path) -> Path:
    """Where the rejected rows of a file go."""
    return path.with_name(path.name + ENDING)


def original(path: Path) -> Path | None:
    """The file whose rejected rows these are; None for any other file."""
    name = path.name.removesuffix(ENDING)
    return path.with_name(name) if name and name != path.name else None


class RejectsFile:
    """Rejected rows on their way to disk; the file appears whole, at the end, or not at all."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: StagedFile | None = None

    def write(self, reject: Reject) -> None:
        """Append one row: where it stood, what was wrong, and what it holds."""
        if self._file is None:
            self._file = StagedFile(self.path)
        row = {
            "line": reject.line,
            "column": reject.column,
            "reason": reject.reason,
            "advice": reject.advice,
            "raw": reject.raw,
        }
        if reject.id is not None:
            row["id"] = reject.id
        # Escapes keep the row one line for every reader, and halves of characters writable.
        plain = reject.raw.isprintable() or reject.raw.replace("\t", "").isprintable()
        self._file.write(json.dumps(row, ensure_ascii=not plain).encode() + b"\n")

    def commit(self) -> None:
        """Put the file in place; one that stands there and differs (repairs?) becomes .old."""
        if self._file is None:
            return
        if self.path.is_file() and not _equal(self.path, self._file):
            self.path.replace(self.path.with_name(self.path.name + ".old"))
        self._file.commit()
        self._file = None

    def drop(self) -> None:
        """Forget the rows; nothing is left behind."""
        if self._file is not None:
            self._file.drop()


def _equal(path: Path, staged: StagedFile) -> bool:
    staged.stream.flush()
    staged.stream.seek(0)
    with path.open("rb") as standing:
        while True:
            old, new = standing.read(CHUNK), staged.stream.read(CHUNK)
            if old != new or not old:
                return old == new


def read_rejected(path: Path, spec: DataSpec, account: RowAccount) -> Iterator[Example | Reject]:
    """The rows of such a file, read from their `raw` as if it stood in the original."""
    lines = Lines(path)
    source = str(original(path) or path)
    read = FORMATS[spec.format or "delimited"]
    for line in lines:
        try:
            if not isinstance(line, str):
                raise line
            if not line.strip():
                continue
            row = parse_row(line)
            raw, first = string(row, "raw"), row.get("line")
            piece = Lines.of_text(source, raw, first if type(first) is int else 1)
            for item in read(piece, spec, account, piece=True):
                if isinstance(item, Reject):
                    yield replace(item, source=lines.name, line=lines.number)
                else:
                    yield item
        except BadRowError as fault:
            text = line if isinstance(line, str) else line.raw
            yield reject_of(fault, lines.name, lines.number, text, part="field")
