"""Text from data inside Markdown: never markup, never HTML, always one line."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from bertsmith.report.elements.page import visible

_MARKS = re.compile(r"[\\`*_\[\]|~$]|:(?=//)|(?<=www)\.|@", re.IGNORECASE)


def words(value: object) -> str:
    """Anything from data as running text, not at the start of a line.

    What Markdown would read as markup or a link is escaped, what HTML would read is an entity.
    """
    shown = html.escape(visible(" ".join(str(value).split())), quote=False)
    return _MARKS.sub(r"\\\g<0>", shown)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; cells are finished Markdown."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]
