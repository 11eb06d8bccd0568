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

from bertsmith.classic.gpt.learner import GptJob, gpt_learner
from bertsmith.classic.neural.learner import NeuralJob, neural_learner
from bertsmith.training.learner import run_job
from bertsmith.training.loop.progress import Progress


def run(order: dict[str, Any], points: Points) -> None:
    def watch(progress: Progress) -> None:
        if progress.step == order.get("kill"):
            os.kill(os.getpid(), signal.SIGKILL)

    stream, out = random_words(60), Path(order["folder"])
    if order["kind"] == "gpt":
        chosen = tiny_gpt(**order["changes"])
        run_job(gpt_learner(), GptJob(stream=stream, settings=chosen, out=out), watch=watch)
    else:
        settings = tiny_settings(order["kind"], **order["changes"])
        run_job(neural_learner(), NeuralJob(stream=stream, settings=settings, out=out), watch=watch)
