"""Text from data inside Markdown and its YAML header: never markup, never HTML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def yaml_lines(values: Mapping[str, Any]) -> list[str]:
    """Plain keys with values as JSON, which every YAML parser reads in the same way.

    Floats must be finite and at least 1e-4 or 0: YAML 1.1 takes 1e-05 for a string.
    """
    return [
        f"{key}: {''.join(map(_character, json.dumps(value, ensure_ascii=False, indent=2)))}"
        for key, value in values.items()
    ]


def _character(character: str) -> str:
    """What cannot be seen, or would open a tag, is escaped; half of a pair is no character."""
    if character == "\n":  # between values; in a string it is escaped already
        return "\n  "
    if character.isprintable() and character not in "<>&":
        return character
    number = ord(character)
    if 0xD800 <= number <= 0xDFFF:
        return "\ufffd"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
