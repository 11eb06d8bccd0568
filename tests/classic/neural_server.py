"""A process that has imported torch once and forks a training for each line that it reads.

A line is JSON: folder, kind, changes of its settings, and `kill`, the step after which the child
kills itself. The answer is {"code": ..., "error": ...}.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import torch
from forked_jobs import Report, answer, forked
from tiny_words import random_words, tiny_settings

from bertsmith.classic.neural.train import NeuralJob, train_neural
from bertsmith.training.loop.progress import Progress


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        answer(forked(partial(_train, json.loads(line))).report())


def _train(order: dict[str, Any], report: Report) -> None:
    def watch(progress: Progress) -> None:
        if progress.step == order.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)

    settings = tiny_settings(order["kind"], **order["changes"])
    job = NeuralJob(stream=random_words(60), settings=settings, out=Path(order["folder"]))
    train_neural(job, watch=watch)
    report["code"] = 0


if __name__ == "__main__":
    main()
