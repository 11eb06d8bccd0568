"""What guesses work on: a sample of the file, and a data spec in the making."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertsmith.errors import InputFileError
from bertsmith.files.encodings import likely_encodings
from bertsmith.files.faults import UnreadableLineError
from bertsmith.files.lines import Lines
from bertsmith.files.streams import format_suffix, read_start
from bertsmith.labeled.spec import DataSpec

ROWS = 200  # records that a guess looks at
MOST_LINES = 5_000
MOST_CHARACTERS = 2_000_000
PEEK = 1 << 18
MANY_BEYOND_ASCII = 4


@dataclass(frozen=True, slots=True)
class Sample:
    """The first lines of a file; `whole` if there are no more."""

    path: Path
    encoding: str
    marked: bool
    lines: tuple[str, ...]
    whole: bool

    @property
    def ending(self) -> str:
        """The suffix of the file name, lower case, with its dot, without .gz or .zst."""
        suffix = format_suffix(self.path)
        return f".{suffix}" if suffix else ""

    @property
    def filled(self) -> list[str]:
        """The lines that are not blank."""
        return [line for line in self.lines if line.strip()]


def take_sample(path: Path, encoding: str | None) -> Sample:
    """Read the first lines of a file; refuse one that is not in the encoding declared."""
    start = read_start(path, PEEK)
    declared = encoding or "utf-8"
    lines = Lines(path, declared)
    good: list[str] = []
    bad: list[tuple[int, UnreadableLineError]] = []
    whole = False
    try:
        whole = _fill(lines, good, bad)
    except InputFileError:
        if not good:  # what comes before a fault is enough to guess from; the reader names it
            raise
    finally:
        lines.close()
    _refuse_mojibake(path, start, lines.encoding)
    if len(bad) > len(good):  # a few rows are for the reader to reject; this is the file
        number, first = bad[0]
        raise first.error(str(path), number)
    return Sample(path, lines.encoding, lines.encoding != declared, tuple(good), whole)


def _fill(lines: Lines, good: list[str], bad: list[tuple[int, UnreadableLineError]]) -> bool:
    """Take lines until there are enough; whether that was all."""
    size = 0
    for line in lines:
        if len(good) >= MOST_LINES or size > MOST_CHARACTERS:
            return False
        if isinstance(line, UnreadableLineError):
            bad.append((lines.number, line))
        elif good and len(line) > MOST_CHARACTERS:  # no row to learn from
            return False
        else:
            good.append(line)
            size += len(line)
    return True


def _refuse_mojibake(path: Path, start: bytes, encoding: str) -> None:
    """Text that is UTF-8 beyond doubt must not be read as something else, whatever was declared."""
    if encoding.startswith("utf") or start.isascii():
        return
    text = start.decode("utf-8", "ignore")
    beyond = sum(character > "\x7f" for character in text)
    if beyond < MANY_BEYOND_ASCII or likely_encodings(start)[:1] != ["utf-8"]:
        return
    raise InputFileError(
        f"{path}, line 1, byte 0: declared as {encoding}, but all of it is valid UTF-8, "
        f"{beyond:,} characters beyond ASCII among it; read it with --encoding utf-8"
    )


class SpecBuilder:
    """Settings given by the user, and guesses for the others."""

    def __init__(self, given: DataSpec) -> None:
        self._given = given
        self._set = given.given
        self._values: dict[str, Any] = {}
        self._why: dict[str, str] = {}

    @property
    def given(self) -> set[str]:
        """The settings that the user decided."""
        return self._set

    def is_set(self, name: str) -> bool:
        """Whether the user decided this setting."""
        return name in self._set

    def put(self, name: str, value: object, why: str) -> None:
        """Guess a setting, unless the user decided it."""
        if name not in self._set:
            self._values[name] = value
            self._why[name] = why

    def get(self, name: str) -> Any:
        """A setting as it stands."""
        return getattr(self._given, name) if name in self._set else self._values.get(name)

    def spec(self) -> DataSpec:
        """The finished spec."""
        given = {name: getattr(self._given, name) for name in self._set}
        why = {name: reason for name, reason in self._why.items() if reason}
        return DataSpec(**given, **self._values, why={**self._given.why, **why})
