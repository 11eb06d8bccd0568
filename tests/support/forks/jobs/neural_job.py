"""A language model from before BERT: folder, kind, changes of its settings.

`kill` is the step after which the process kills itself.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from disk_points import Points
from tiny_words import random_words, tiny_gpt, tiny_settings

from bertsmith.classic.gpt.train import GptJob, train_gpt
from bertsmith.classic.neural.train import NeuralJob, train_neural
from bertsmith.training.loop.progress import Progress


def run(order: dict[str, Any], points: Points) -> None:
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
