"""Sentence trainings for `serve_ranks`; jobs are [folder, objective, data, sections] each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forked_ranks import serve_ranks
from tiny_sentences import tiny_job

from bertsmith.sentences.train.train import train_sentences
from bertsmith.training.execution.execution import Execution


def train(order: dict[str, Any], execution: Execution) -> None:
    for folder, objective, data, sections in order["jobs"]:
        job = tiny_job(order["model"], objective, data, sections=sections, out=Path(folder))
        train_sentences(job, execution=execution)


if __name__ == "__main__":
    serve_ranks(train)
