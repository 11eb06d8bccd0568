"""Everything that a command imports late, imported at once for all children of a process."""

from __future__ import annotations

import importlib
import pkgutil

import bertsmith


def import_everything() -> None:
    """Every module of the package, and what baselines load."""
    for name in ("sklearn.feature_extraction.text", "sklearn.linear_model"):
        importlib.import_module(name)
    for module in pkgutil.walk_packages(bertsmith.__path__, "bertsmith."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
