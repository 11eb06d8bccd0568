"""A run in a process of its own that may be told when to die: `python -m ... JOB.json`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch

from bertsmith.training.execution.execution import choose_execution
from bertsmith.training.loop.progress import Progress
from bertsmith.training.pretrain.pretrain import Job, pretrain
from bertsmith.training.pretrain.recipe import load_recipe


def main(path: Path) -> int:
    """Run the job of a file; the exit code is that of the outcome."""
    order = json.loads(path.read_text(encoding="utf-8"))
    torch.set_num_threads(order["threads"])
    job = Job(
        recipe=load_recipe(order["recipe"]),
        corpus=Path(order["corpus"]),
        out=Path(order["out"]),
        init=order["init"],
    )

    def watch(look: Progress) -> None:
        if look.step == order["die_after"]:
            os.kill(os.getpid(), signal.SIGKILL)

    execution = choose_execution(job.recipe.run, job.out)
    return pretrain(job, execution=execution, watch=watch).exit_code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
