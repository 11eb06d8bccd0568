"""The only writer of the command line: results on standard output, remarks on standard error.

Texts, labels, column and file names are data, and data can hold control characters that move the
cursor, change colors or rename the window. So nothing is written but by this module:

- text for people is escaped (`printable`), whether it goes to a terminal or not;
- JSON is written as it is. On a terminal the control characters that JSON leaves as they are (DEL
  and above) become JSON escapes: another spelling of the same value;
- tables and progress bars of rich come from `rich_console`, which escapes what they show.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bertsmith.errors import without_passwords

if TYPE_CHECKING:
    from rich.console import (
        Console,
        ConsoleOptions,
        ConsoleRenderable,
        RenderableType,
        RenderResult,
    )

_RAW_IN_JSON = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def note(message: str, *, quiet: bool = False) -> None:
    """A remark for people, on standard error."""
    if not quiet:
        write_remarks([f"note: {message}"])


def write_remarks(lines: Iterable[str]) -> None:
    """Lines for people, on standard error, without the passwords of addresses."""
    shown = (printable(without_passwords(line)) for line in lines)
    sys.stderr.write("".join(f"{line}\n" for line in shown))
    sys.stderr.flush()


def write_lines(lines: Sequence[str]) -> None:
    """Lines for people on standard output, as UTF-8 in any locale."""
    _write(f"{printable(chr(10).join(lines))}\n".encode("utf-8", "backslashreplace"))


def write_piece(text: str) -> None:
    """A piece of text for people on standard output, at once and without a line end."""
    _write(printable(text).encode("utf-8", "backslashreplace"))


def write_json(record: object) -> None:
    """An indented JSON value on standard output; nan is null."""
    from bertsmith.files.strict_json import json_values

    write_json_lines(json.dumps(json_values(record), ensure_ascii=False, indent=2) + "\n")


def write_json_lines(text: str) -> None:
    """JSON that is ready, with its line ends, on standard output."""
    if sys.stdout.isatty():
        text = _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    _write(text.encode("utf-8", "backslashreplace"))


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


def rich_console(
    *, stderr: bool = False, markup: bool = False, soft_wrap: bool = False, width: int | None = None
) -> Console:
    """A console of rich that escapes the control characters of what it shows, not its own."""
    from rich.console import Console, RenderHook

    class Escape(RenderHook):
        """Wraps everything printed; progress bars escape their own fields."""

        def process_renderables(
            self, renderables: list[ConsoleRenderable]
        ) -> list[ConsoleRenderable]:
            return [_Escaped(one) for one in renderables]

    console = Console(
        stderr=stderr, markup=markup, soft_wrap=soft_wrap, width=width, highlight=False
    )
    console.push_render_hook(Escape())
    return console


class _Escaped:
    """Something that rich can show, with its texts made printable and its own controls kept."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._inner, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def _write(data: bytes) -> None:
    sys.stdout.flush()  # what was written as text comes first
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
