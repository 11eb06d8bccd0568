"""Records of CSV (RFC 4180) and TSV files: nothing guessed, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator

from bertsmith.errors import InputFileError
from bertsmith.files.lines import Lines

LONGEST_FIELD = 1 << 28  # characters; a quote that is never closed must not eat the machine


def tsv_records(lines: Lines) -> Iterator[list[str]]:
    """One record a line, split at tabs; quotes are ordinary characters, as in most TSV corpora."""
    for line in lines:
        yield line.split("\t")


def csv_records(lines: Lines, separator: str = ",") -> Iterator[list[str]]:
    r"""Records whose fields may be quoted: `"a, ""b"" and\na new line"` is one field."""
    for line in lines:
        yield _record(line, lines, separator) if '"' in line else line.split(separator)


def _record(line: str, lines: Lines, separator: str) -> list[str]:
    fields: list[str] = []
    at = 0
    while True:
        if line.startswith('"', at):
            text, line, at = _quoted(line, at + 1, lines)
            fields.append(text)
            if at == len(line):
                return fields
            if line[at] != separator:
                raise InputFileError(
                    f"{lines.name}, line {lines.number}, column {at + 1}: {line[at]!r} after a "
                    'closing quote; a quote inside a quoted field is written twice: ""'
                )
            at += 1
            continue
        end = line.find(separator, at)
        if end < 0:
            fields.append(line[at:])
            return fields
        fields.append(line[at:end])
        at = end + 1


def _quoted(line: str, at: int, lines: Lines) -> tuple[str, str, int]:
    """The field that opened before `at`; returns it, the line it ends on and the place after it."""
    opened = (lines.number, at)
    parts: list[str] = []
    length = 0
    while True:
        end = line.find('"', at)
        if end < 0:
            parts += (line[at:], lines.ending)
            length += len(line) - at + 1
            following = next(lines, None)
            if following is None or length > LONGEST_FIELD:
                raise InputFileError(
                    f"{lines.name}, line {opened[0]}, column {opened[1]}: the quote that opens "
                    'here is never closed; close it, or write it twice ("") if it is text'
                )
            line, at = following, 0
        elif line.startswith('"', end + 1):
            parts.append(line[at : end + 1])
            length += end + 1 - at
            at = end + 2
        else:
            parts.append(line[at:end])
            return "".join(parts), line, end + 1
