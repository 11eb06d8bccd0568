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

from bertsmith.api import road
from bertsmith.studies.road import material, study
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.ranks import Ranks
from bertsmith.training.repeat.trials import StudyProgress, held, run_trials


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
    found = road.read_road(tiny_request(Path(order["material"]), Path(order["folder"])))
    with held(found.folder, Ranks()):
        done = run_trials(found.trials(Execution()), found.folder, watch=watch, keep_going=True)
    road.write_road(found, done)
