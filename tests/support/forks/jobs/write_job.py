"""Trainings to write, one after another; `jobs` are [folder, task, sections] each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from disk_points import Points
from forked_execution import as_rank
from tiny_writing import writing_job

from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.write.learner import write_learner
from bertsmith.training.learner import run_job


def run(order: dict[str, Any], points: Points) -> None:
    def work(execution: Execution) -> None:
        for folder, task, sections in order["jobs"]:
            job = writing_job(order["model"], task, sections=sections, out=Path(folder))
            run_job(write_learner(), job, execution=execution)

    as_rank(order, points, work)
