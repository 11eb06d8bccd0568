"""One HTML file that loads nothing and runs nothing: whatever comes from data is text in it."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence

STYLE = """
:root { --ink: #1b1f24; --dim: #5f6874; --paper: #fff; --line: #dde2e8; --soft: #f5f7f9;
  --accent: #3b78d8; --good: #2f9e5b; --bad: #d9682b; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ed; --dim: #98a1ab; --paper: #15181c; --line: #363c44; --soft: #1d2126; }
}
* { box-sizing: border-box; }
body { font: 15px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto 4rem; padding: 0 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: 1.15rem; margin: 2.5rem 0 .5rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.5rem 0 .4rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
.lead { font-size: 1.2rem; line-height: 1.45; max-width: none; }
.dim { color: var(--dim); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .3rem 0 .8rem; }
td, th { text-align: left; padding: .2rem 1.1rem .2rem 0; vertical-align: top; }
th { font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap; }
.rows td, .rows th { border-bottom: 1px solid var(--line); }
.rows tr.head th { color: var(--dim); font-weight: 500; font-size: .9em;
  white-space: normal; vertical-align: bottom; max-width: 9rem; }
.rows td:first-child { min-width: 6.5rem; }
.facts th { color: var(--dim); font-weight: 500; white-space: nowrap; }
pre { white-space: pre-wrap; border-left: 3px solid var(--line); padding-left: 1rem;
  font-size: 13px; }
.scroll { overflow-x: auto; overflow-wrap: normal; }
svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--dim); font-size: 12px; }
svg .grid { stroke: var(--line); } svg .frame { stroke: var(--dim); fill: none; }
svg .even { stroke: var(--dim); stroke-dasharray: 5 4; fill: none; }
.chart svg { min-width: 34rem; } .square { max-width: 27rem; }
.bars { display: grid; grid-template-columns: minmax(5rem, auto) 1fr auto; gap: .35rem .9rem;
  align-items: center; margin: 1rem 0 1.2rem; max-width: 46rem; }
.track { background: var(--soft); border-radius: 4px; height: 1.15rem; overflow: hidden; }
.fill { display: block; height: 100%; background: #8b97a6; }
.fill.own { background: var(--accent); }
.value { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.own { font-weight: 600; }
.matrix td, .matrix th { padding: .28rem .5rem; text-align: right; border: 1px solid var(--line);
  min-width: 2.6rem; }
.matrix th { font-weight: 500; } .matrix th.name { text-align: left; white-space: nowrap; }
.matrix td.none { color: var(--dim); }
.card { background: var(--soft); border-radius: 8px; padding: .7rem 1rem; margin: .6rem 0; }
.card p { margin: .3rem 0; max-width: none; white-space: pre-line; }
.card .place { color: var(--dim); font-size: .85em; }
.labels { display: flex; flex-wrap: wrap; gap: .15rem 1.4rem; }
.truth { color: var(--good); } .prediction { color: var(--bad); } .labels b { font-weight: 600; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--accent); }
@media (max-width: 34rem) {
  body { margin-top: 1rem; padding: 0 .9rem; } .lead { font-size: 1.08rem; }
  td, th { padding-right: .7rem; }
}
@media print { details > * { display: block; } body { max-width: none; } }
"""


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
    """Names and values, one pair per line."""
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
