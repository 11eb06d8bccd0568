"""A file with one fault in it, and what the message about it must say."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Broken:
    """`place` and `says` are patterns; `good` rows remain when the bad ones are skipped.

    `fatal`: the file as a whole cannot be read.
    """

    name: str
    content: bytes
    line: int
    place: str
    says: str
    good: int = 4
    bad: int = 1
    fatal: bool = False
    spec: dict[str, object] = field(default_factory=dict)
    longest: int | None = None  # the limit of a line, where another is tried


def at(line: int, rows: list[str | bytes], bad: str | bytes) -> bytes:
    """Rows with the bad one put in at a line, counted from 1."""
    lines = [row if isinstance(row, bytes) else row.encode() for row in rows]
    lines.insert(line - 1, bad if isinstance(bad, bytes) else bad.encode())
    return b"\n".join(lines) + b"\n"
