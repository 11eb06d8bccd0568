"""A process that has imported torch once and forks a command for each line it reads.

A line is JSON: arguments (of the command line), kill_at (the number of the file-system step at
which the child kills itself, 0: never). The answer is {"code": ..., "points": ..., "error": ...}.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from functools import partial
from typing import Any

import sklearn.feature_extraction.text
import sklearn.linear_model  # noqa: F401 - loaded late by baselines
import torch
from corpus_child import HerePool
from disk_points import Points
from forked_jobs import Report, answer, forked

import bertsmith
from bertsmith.cli.app import main as run_command
from bertsmith.corpus import build, worker
from bertsmith.files import streams
from bertsmith.runtime import answer_files, embedder

# Small inputs have many places to resume from, and work stays in the one process that is killed.
build.SECONDS_BETWEEN_SAVES = 0.0
build.BLOCK = streams.CHUNK = 2_000
build.build_corpus.__kwdefaults__["block_bytes"] = 2_000
worker.ProcessPoolExecutor = HerePool  # type: ignore[assignment, misc]
answer_files.CHUNK = 16
embedder.CHUNK = 16


def main() -> None:
    torch.set_num_threads(1)
    for module in pkgutil.walk_packages(bertsmith.__path__, "bertsmith."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)  # once for all children
    for line in sys.stdin:
        answer({"points": None, **forked(partial(_run, json.loads(line))).report()})


def _run(job: dict[str, Any], report: Report) -> None:
    points = Points(job["kill_at"])
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    try:
        points.install()
        run_command(job["arguments"])
    except SystemExit as end:
        report["code"] = int(end.code or 0)
    finally:
        report["points"] = points.count


if __name__ == "__main__":
    main()
