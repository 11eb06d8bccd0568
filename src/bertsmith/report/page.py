"""One HTML file that loads nothing and runs nothing: whatever comes from data is text in it."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

# No script may run and nothing may be fetched, whatever slips through elsewhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { --ink: #1b1f24; --dim: #68707a; --paper: #fff; --line: #d8dde3; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --dim: #98a1ab; --paper: #15181c; --line: #363c44; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top;
  overflow-wrap: anywhere; }
th { font-weight: 600; } td.number, th.number { text-align: right; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--line);
  padding-left: 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--dim); font-size: 12px; }
svg .grid { stroke: var(--line); } svg .frame { stroke: var(--dim); fill: none; }
"""


def text(value: object) -> str:
    """Anything from data as HTML text or attribute value.

    Characters that a reader cannot see or that change the order of others are spelled out.
    """
    return html.escape("".join(map(_visible, str(value))), quote=True)


def page(title: str, sections: Iterable[str]) -> str:
    """A whole page from sections of finished HTML."""
    body = "\n".join(sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{text(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def heading(title: str) -> str:
    """The title of a section."""
    return f"<h2>{text(title)}</h2>"


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values, one pair a line."""
    lines = (f"<tr><th>{text(name)}</th><td>{text(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(lines)}</table>"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [_row("th", header), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def preformatted(content: str) -> str:
    """Text with its line breaks."""
    return f"<pre>{'<br>'.join(text(line) for line in content.splitlines())}</pre>"


def _row(tag: str, cells: Sequence[object]) -> str:
    classes = ["", *[' class="number"'] * (len(cells) - 1)]
    marked = zip(cells, classes, strict=True)
    return f"<tr>{''.join(f'<{tag}{kind}>{text(cell)}</{tag}>' for cell, kind in marked)}</tr>"


def _visible(character: str) -> str:
    if character.isprintable() or character == " ":
        return character
    if unicodedata.category(character) == "Cs":
        return "\ufffd"
    return f"⟨U+{ord(character):04X}⟩"
