"""Where children of a test find what the test itself can import."""

from __future__ import annotations

import os
import sys


def import_path() -> str:
    """PYTHONPATH of a child: the package and the folders of support, wherever they are."""
    return os.pathsep.join(path for path in sys.path if path)
