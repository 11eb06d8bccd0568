"""HTML from templates: one file that loads nothing from elsewhere; data is always text in it.

A `str` is data, a `Markup` is finished HTML. Templates escape every `str`, so that a section that
forgets to mark its HTML shows tags as text, and no section can forget to escape.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from jinja2 import Environment

PLAIN_SPACES = "\u00a0\u3000"  # seen as the spaces they are
# Letters, marks and signs that have no ink, although Unicode calls them printable.
INKLESS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


def element(template: str, name: str, *values: object) -> Markup:
    """Finished HTML from a macro of a template."""
    macro = getattr(_environment().get_template(f"{template}.html").module, name)
    return Markup(macro(*values))  # noqa: S704


def page(title: str, sections: Iterable[Markup]) -> str:
    """A whole page from its sections."""
    return _environment().get_template("page.html").render(title=title, sections=sections)


def template_page(template: str, values: Mapping[str, object]) -> str:
    """A page from a template of its own."""
    return _environment().get_template(template).render(values)


def template_source(name: str) -> str:
    """A style sheet or a script as it is, for a page that allows it by its hash."""
    loader = _environment().loader
    if loader is None:
        raise LookupError(name)
    return loader.get_source(_environment(), name)[0]


def heading(title: str) -> Markup:
    """The title of a section."""
    return element("elements", "heading", title)


def subheading(title: str) -> Markup:
    """The title of a part of a section."""
    return element("elements", "subheading", title)


def paragraph(words: str, kind: str = "") -> Markup:
    """Running text; `kind` is a class of the style sheet."""
    return element("elements", "paragraph", words, kind)


def folded(title: str, sections: Iterable[Markup]) -> Markup:
    """Sections that are shown on request."""
    return element("elements", "folded", title, sections)


def facts(rows: Iterable[tuple[str, object]]) -> Markup:
    """Names and values, one pair per line."""
    return element("elements", "facts", rows)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """A table whose first column is text and whose others are numbers."""
    return element("elements", "table", header, rows)


def texts_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    """A table of texts, which keep their line breaks."""
    return element("elements", "texts_table", header, rows)


def preformatted(content: str) -> Markup:
    """Text with its line breaks."""
    return element("elements", "preformatted", content)


@cache
def _environment() -> Environment:
    # Imported here: only a command that writes a page pays for the engine.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bertsmith.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_spelled_out,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["lines"] = _lines
    return environment


def _spelled_out(value: object) -> object:
    """What a template prints: HTML as it is, data with unseen characters spelled out."""
    return value if isinstance(value, Markup) else visible(str(value))


def _lines(value: object) -> Markup:
    """Text that keeps its line breaks, as line breaks and not as elements."""
    lines = str(value).replace("\r\n", "\n").split("\n")
    return Markup("\n").join(escape(visible(line)) for line in lines)


def visible(value: str) -> str:
    """A text with unseen characters spelled out; it may hold markup still."""
    return "".join(map(_visible, value))


def _visible(character: str) -> str:
    if character in INKLESS:
        return f"⟨U+{ord(character):04X}⟩"
    if character.isprintable() or character in PLAIN_SPACES:
        return character
    if unicodedata.category(character) == "Cs":
        return "\ufffd"
    return f"⟨U+{ord(character):04X}⟩"
