"""Trainings to write for `serve_ranks`; jobs are [folder, task, sections] each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forked_ranks import serve_ranks
from tiny_writing import writing_job

from bertsmith.seq2seq.train import train_to_write
from bertsmith.training.execution.execution import Execution


def train(order: dict[str, Any], execution: Execution) -> None:
    for folder, task, sections in order["jobs"]:
        job = writing_job(order["model"], task, sections=sections, out=Path(folder))
        train_to_write(job, execution=execution)


if __name__ == "__main__":
    serve_ranks(train)
