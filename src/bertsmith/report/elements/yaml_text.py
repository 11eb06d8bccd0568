"""Values as YAML that every parser reads in the same way: strings are always quoted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any


def yaml_lines(values: Mapping[str, Any], indent: int = 0) -> list[str]:
    """A mapping of plain keys to strings, numbers, lists and mappings, line by line."""
    lines: list[str] = []
    pad = "  " * indent
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += [f"{pad}{key}:", *yaml_lines(value, indent + 1)]
        elif isinstance(value, list | tuple):
            lines += [f"{pad}{key}:", *_items(value, indent)] if value else [f"{pad}{key}: []"]
        else:
            lines.append(f"{pad}{key}: {yaml_scalar(value)}")
    return lines


def yaml_scalar(value: object) -> str:
    """A string, a number or a truth value; numbers that are none are null."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        shown = repr(value)
        # YAML 1.1 takes 1e-05 for a string: it wants a point and a sign.
        return shown if "e" not in shown or "." in shown else shown.replace("e", ".0e")
    return "".join(map(_character, json.dumps(str(value), ensure_ascii=False)))


def _items(values: Sequence[Any], indent: int) -> list[str]:
    lines = []
    pad = "  " * indent
    for value in values:
        if isinstance(value, Mapping):
            first, *rest = yaml_lines(value, indent + 1)
            lines += [f"{pad}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{pad}- {yaml_scalar(value)}")
    return lines


def _character(character: str) -> str:
    """What cannot be seen, or would open a tag, is escaped; half of a pair is no character."""
    if character.isprintable() and character not in "<>&":
        return character
    number = ord(character)
    if 0xD800 <= number <= 0xDFFF:
        return "\ufffd"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
