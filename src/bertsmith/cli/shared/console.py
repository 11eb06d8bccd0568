"""Text for people and programs: notes on standard error, results on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence


def note(message: str, *, quiet: bool = False) -> None:
    """A remark for people, on standard error."""
    if not quiet:
        sys.stderr.write(f"note: {message}\n")


def write_json(record: object) -> None:
    """JSON on standard output; nan is null."""
    from bertsmith.files.strict_json import json_values

    _write(json.dumps(json_values(record), ensure_ascii=False, indent=2))


def write_lines(lines: Sequence[str]) -> None:
    """Lines on standard output, as UTF-8 in any locale and safe for terminals."""
    _write(printable("\n".join(lines)))


def printable(text: str, keep: str = "\n\t") -> str:
    """The text with control characters, which could drive a terminal, escaped."""
    shown = (c if c in keep or c.isprintable() else ascii(c)[1:-1] for c in text)
    return "".join(shown).encode("utf-8", "backslashreplace").decode()


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of equal width: the first to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = []
    for cells in (heads, *rows):
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        lines.append("  ".join([cells[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def _write(text: str) -> None:
    sys.stdout.flush()  # what was written as text comes first
    sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
