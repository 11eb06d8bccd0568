"""Names that a module offers and imports at their first use, so that importing it stays cheap."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def homes_of(modules: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The module of each name, from the names of each module; a name has one home."""
    homes: dict[str, str] = {}
    for module, names in modules.items():
        for name in names:
            if name in homes:
                raise TypeError(f"{name} comes from {homes[name]} and from {module}")
            homes[name] = module
    return homes


def imported(package: str, homes: Mapping[str, str], name: str) -> Any:
    """A name from its home, kept in the package for the next time."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(homes[name]), name)
    setattr(sys.modules[package], name, value)
    return value
