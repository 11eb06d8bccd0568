"""A process that forks the build of a small index for each line it reads, as toy_server does.

A line is JSON: folder, kill_at (the number of the file-system step at which the child kills
itself). The answers are {"pid": ...} at once and {"code": ..., "points": ..., "error": ...}.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import usearch.index  # noqa: F401  imported once for all children
from disk_points import Points
from forked_jobs import serve_killable
from toy_index import build, texts

from bertsmith.search import index
from bertsmith.search.folder import candidates, recall, writer

ROWS = texts(1_500)


def run(job: dict[str, Any], points: Points) -> int:
    points.install()
    build(Path(job["folder"]), ROWS, "float16").close()
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    writer.MOST_ROWS, index.BLOCK = 600, 256
    candidates.EXACT_BELOW = recall.EXACT_BELOW = 1_000
    serve_killable(run)
