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
from tiny_words import random_words, tiny_gpt, tiny_settings

from bertsmith.classic.gpt.train import GptJob, train_gpt
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

    stream, out = random_words(60), Path(order["folder"])
    if order["kind"] == "gpt":
        chosen = tiny_gpt(**order["changes"])
        train_gpt(GptJob(stream=stream, settings=chosen, out=out), watch=watch)
    else:
        settings = tiny_settings(order["kind"], **order["changes"])
        train_neural(NeuralJob(stream=stream, settings=settings, out=out), watch=watch)
    report["code"] = 0


if __name__ == "__main__":
    main()
