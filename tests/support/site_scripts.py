"""The scripts of docs/site, which are no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SITE = Path(__file__).parents[2] / "docs" / "site"


def script(name: str) -> ModuleType:
    """A script of docs/site as a module."""
    spec = importlib.util.spec_from_file_location(f"docs_site_{name}", SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    if str(SITE) not in sys.path:
        sys.path.append(str(SITE))  # they import each other
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
