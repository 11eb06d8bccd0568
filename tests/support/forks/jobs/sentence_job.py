"""Sentence trainings, one after another; `jobs` are [folder, objective, data, sections] each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from disk_points import Points
from forked_execution import as_rank
from tiny_sentences import tiny_job

from bertsmith.sentences.train.learner import train_sentences
from bertsmith.training.execution.execution import Execution


def run(order: dict[str, Any], points: Points) -> None:
    def work(execution: Execution) -> None:
        for folder, objective, data, sections in order["jobs"]:
            job = tiny_job(order["model"], objective, data, sections=sections, out=Path(folder))
            train_sentences(job, execution=execution)

    as_rank(order, points, work)
