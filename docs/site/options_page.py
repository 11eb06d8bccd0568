"""docs/options.md from the settings of the commands: every option, its values, default and help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import typer.main

from bertsmith.cli.app import load_command
from bertsmith.cli.command_table import HEADINGS, SECOND
from bertsmith.setting import GROUPS, REQUIRED, SettingField

HEAD = """# Options

Every option of every command, made from the settings that the commands read when this site is
built. What commands do, with examples, is in the [command line reference](reference-cli.md). A dot
marks options that only `--help-all` shows.
"""


def options_page() -> str:
    """The whole page."""
    parts = [HEAD]
    for heading, under in HEADINGS.items():
        parts.append(f"## {heading}\n")
        names = [*under, *(two for two in SECOND if two.split()[0] in under)]
        for name in names:
            for full, settings in _commands(name):
                parts.append(f"### {full}\n")
                parts += option_rows(settings) if settings else ["No options.\n"]
    return "\n".join(parts)


def option_rows(settings: Mapping[str, SettingField]) -> list[str]:
    """The table of a command: its options in the order of their groups."""
    rows = ["| option | values | default | |", "|---|---|---|---|"]
    for one in sorted(settings.values(), key=lambda one: GROUPS.index(one.setting.group)):
        rare = "·" if one.setting.rare else ""
        cells = (f"{rare}`{one.flag}`", _values(one), _default(one), one.setting.help)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return [*rows, ""]


def _commands(name: str) -> Iterator[tuple[str, Mapping[str, SettingField]]]:
    """A command, or those of a group, with the documented settings of each."""
    command: Any = typer.main.get_command(load_command(name).app)
    inner = getattr(command, "commands", None)
    for second, one in (inner or {"": command}).items():
        yield f"{name} {second}".strip(), getattr(one.callback, "settings", {})


def _values(one: SettingField) -> str:
    kinds = [kind for kind in (get_args(one.kind) or (one.kind,)) if kind is not NoneType]
    if get_origin(one.kind) is Literal:
        kinds = [one.kind]
    found = "several" if one.holds_several else " or ".join(_kind(kind) for kind in kinds)
    bounds = [f"{one.min:,} or more" if one.max is None and one.min is not None else ""]
    if one.max is not None:
        bounds = [f"{one.min:,} to {one.max:,}" if one.min is not None else f"up to {one.max:,}"]
    return ", ".join(part for part in (found, *bounds) if part)


def _kind(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    names = {bool: "", int: "number", float: "number", str: "text"}
    return names.get(kind, getattr(kind, "__name__", str(kind)).lower())


def _default(one: SettingField) -> str:
    if one.default is REQUIRED:
        return "required"
    if one.default in (None, False, (), []):
        return ""
    several = isinstance(one.default, (list, tuple))
    return f"`{', '.join(map(str, one.default)) if several else one.default}`"
