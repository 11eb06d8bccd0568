"""A process that has imported torch once and forks a road for each line that it reads.

A line is JSON: material, folder, and `kill`: "MODEL:STEP" for a kill after a step of a training,
"MODEL:tests" for one after the training, before the tests are stored, "preparation" for one after
the split. The answer is {"code": ..., "error": ...}.
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
from tiny_road import tiny_request

from bertsmith.api import road
from bertsmith.studies.road import material, study
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.repeat.trials import StudyProgress, held, run_trials


def main() -> None:
    torch.set_num_threads(1)
    for line in sys.stdin:
        answer(forked(partial(_road, json.loads(line))).report())


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _road(order: dict[str, Any], report: Report) -> None:
    model, _, place = (order.get("kill") or "").partition(":")
    if model == "preparation":
        material.learn_vocabulary = _die
    measured = study.measured

    def measure(name: str, *rest: Any) -> Any:
        return _die() if (name, place) == (model, "tests") else measured(name, *rest)

    def watch(progress: StudyProgress) -> None:
        if (progress.name, str(progress.run.step)) == (model, place):
            _die()

    study.measured = measure
    found = road.read_road(tiny_request(Path(order["material"]), Path(order["folder"])))
    with held(found.folder, Ranks()):
        done = run_trials(found.trials(Execution()), found.folder, watch=watch, keep_going=True)
    road.write_road(found, done)
    report["code"] = 0


if __name__ == "__main__":
    main()
