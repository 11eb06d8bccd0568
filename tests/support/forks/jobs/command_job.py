"""A command line, `arguments`, on small blocks: many places to resume from."""

from __future__ import annotations

import os
from typing import Any

from corpus_child import HerePool
from disk_points import Points
from whole_package import import_everything as prepare  # noqa: F401 - called by the server

from bertsmith.cli.app import main
from bertsmith.corpus import build
from bertsmith.files import pool, streams
from bertsmith.runtime import answer_files, embedder


def run(order: dict[str, Any], points: Points) -> dict[str, Any]:
    _work_in_small_blocks()
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    points.install()
    try:
        main(order["arguments"])
    except SystemExit as end:
        return {"code": int(end.code or 0)}


def _work_in_small_blocks() -> None:
    """And in the one process that is killed."""
    build.SECONDS_BETWEEN_SAVES = 0.0
    build.BLOCK = streams.CHUNK = 2_000
    build.build_corpus.__kwdefaults__["block_bytes"] = 2_000
    pool.ProcessPoolExecutor = HerePool  # type: ignore[assignment, misc]
    answer_files.CHUNK = embedder.CHUNK = 16
