"""One HTML file that loads nothing and runs nothing: whatever comes from data is text in it."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

from bertsmith.report.style import STYLE

# No script may run and nothing may be fetched, whatever slips through elsewhere.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

PLAIN_SPACES = "\u00a0\u3000"  # seen as the spaces they are
# Letters, marks and signs that have no ink, although Unicode calls them printable.
INKLESS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


def text(value: object) -> str:
    """Anything from data as HTML text or attribute value.

    Characters that a reader cannot see or that change the order of others are spelled out.
    """
    return html.escape(visible(str(value)), quote=True)


def visible(value: str) -> str:
    """A text with unseen characters spelled out; it may hold markup still."""
    return "".join(map(_visible, value))


def flowing(value: object) -> str:
    """Text that keeps its line breaks, as line breaks and not as elements."""
    return "\n".join(text(line) for line in str(value).replace("\r\n", "\n").split("\n"))


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


def subheading(title: str) -> str:
    """The title of a part of a section."""
    return f"<h3>{text(title)}</h3>"


def paragraph(words: str, kind: str = "") -> str:
    """Running text; `kind` is a class of the sheet."""
    return f"<p{_class(kind)}>{text(words)}</p>"


def folded(title: str, sections: Iterable[str]) -> str:
    """Sections that are shown on request."""
    body = "\n".join(sections)
    return f"<details><summary>{text(title)}</summary>\n{body}\n</details>"


def scrolled(content: str, kind: str = "") -> str:
    """Wide content that scrolls by itself on a narrow screen."""
    return f'<div class="{f"scroll {kind}".strip()}">{content}</div>'


def facts(rows: Iterable[tuple[str, object]]) -> str:
    """Names and values, one pair a line."""
    lines = (f"<tr><th>{text(name)}</th><td>{text(value)}</td></tr>" for name, value in rows)
    return f'<table class="facts">{"".join(lines)}</table>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [_row("th", header, "head"), *(_row("td", row) for row in rows)]
    return scrolled(f'<table class="rows">{"".join(lines)}</table>')


def preformatted(content: str) -> str:
    """Text with its line breaks."""
    return f"<pre>{flowing(content)}</pre>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _row(tag: str, cells: Sequence[object], kind: str = "") -> str:
    classes = ["", *[' class="number"'] * (len(cells) - 1)]
    marked = zip(cells, classes, strict=True)
    inside = "".join(f"<{tag}{mark}>{text(cell)}</{tag}>" for cell, mark in marked)
    return f"<tr{_class(kind)}>{inside}</tr>"


def _visible(character: str) -> str:
    if character in INKLESS:
        return f"⟨U+{ord(character):04X}⟩"
    if character.isprintable() or character in PLAIN_SPACES:
        return character
    if unicodedata.category(character) == "Cs":
        return "\ufffd"
    return f"⟨U+{ord(character):04X}⟩"
