"""Paths as users give them: a string or a Path, one or several."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bertsmith.errors import check_type

GivenPath = str | Path
GivenPaths = Iterable[GivenPath] | GivenPath


def path_of(what: str, value: GivenPath) -> Path:
    """The path of an argument; `what` is its name."""
    check_type(what, value, str, Path)
    return Path(value)


def paths_of(what: str, value: GivenPaths) -> list[Path]:
    """The paths of an argument that takes one or several."""
    check_type(what, value, str, Path, Iterable)
    given = [value] if isinstance(value, str | Path) else value
    return [path_of(what, one) for one in given]
