"""The build of a small index in `folder`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import usearch.index  # noqa: F401  imported once for all children
from disk_points import Points
from toy_index import build, texts

from bertsmith.search import index
from bertsmith.search.folder import candidates, writer

ROWS = texts(1_500)


def run(order: dict[str, Any], points: Points) -> None:
    writer.MOST_ROWS, index.BLOCK = 600, 256
    candidates.EXACT_BELOW = 1_000
    points.install()
    build(Path(order["folder"]), ROWS, "float16").close()
