"""A list of entities with a type each, read from a file of the user."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertsmith.errors import InputFileError
from bertsmith.files.faults import UnreadableLineError
from bertsmith.files.lines import Lines
from bertsmith.wording import shown

FORMAT = "`entity TAB type` lines"


@dataclass(frozen=True, slots=True)
class EntityList:
    """Entities in the order of their file, each once: `names` and the type of each in `types`.

    `repeated` are those that stood there once more.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    repeated: tuple[str, ...] = ()


def read_entities(path: Path) -> EntityList:
    """Read a file of `entity TAB type` lines; blank lines are skipped."""
    if not path.is_file():
        raise InputFileError(
            f"{path}: there is no such file; a list of entities is a file of {FORMAT}"
        )
    found: dict[str, tuple[str, int]] = {}
    repeated: list[str] = []
    lines = Lines(path)
    for line in lines:
        place = f"{path}, line {lines.number}"
        if isinstance(line, UnreadableLineError):
            raise InputFileError(f"{place}: {line}")
        if not line.strip():
            continue
        name, kind = _entry(line, place)
        known, first = found.setdefault(name, (kind, lines.number))
        if known != kind:
            raise InputFileError(
                f"{place}: {shown(name)} is of type {shown(kind)} here and of type {shown(known)} "
                f"in line {first}; leave each entity one type"
            )
        if first != lines.number:
            repeated.append(name)
    if not found:
        raise InputFileError(f"{path}: there is no entity in it; write {FORMAT}")
    return EntityList(tuple(found), tuple(kind for kind, _ in found.values()), tuple(repeated))


def _entry(line: str, place: str) -> tuple[str, str]:
    cells = [" ".join(cell.split()) for cell in line.split("\t")]
    if len(cells) != 2:
        raise InputFileError(
            f"{place}: {len(cells)} fields in {shown(line)}; write two, divided by a tab: an "
            "entity and its type"
        )
    for what, cell in zip(("entity", "type"), cells, strict=True):
        if not cell:
            raise InputFileError(
                f"{place}: the {what} is empty in {shown(line)}; fill it in, or remove the line"
            )
    return cells[0], cells[1]
