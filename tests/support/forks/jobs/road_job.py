"""A road: material, folder, and `kill`, where the process kills itself.

"MODEL:STEP" is after a step of a training, "MODEL:tests" after the training, before the tests are
stored, "preparation" after the split.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from disk_points import Points
from tiny_road import tiny_request

from bertsmith.studies.road import material, study
from bertsmith.studies.study import run_study, write_study
from bertsmith.training.execution.execution import Execution
from bertsmith.training.repeat.trials import StudyProgress


def _die(*_: Any, **__: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def run(order: dict[str, Any], points: Points) -> None:
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
    found = study.read_road(tiny_request(Path(order["material"]), Path(order["folder"])))
    done = run_study(found, found.plan(Execution()), watch=watch)
    write_study(found, found.result(done))
