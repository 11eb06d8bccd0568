"""A classifier from docstrings, with its report: `bertsmith finetune` in half a minute."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bertsmith.api.finetune import run_finetune
from bertsmith.api.observer import Observer
from bertsmith.api.train import TrainedModel
from bertsmith.training.kind import TrainingRequest
from bertsmith.training.loop.progress import Watcher

RECIPE = "features"  # takes seconds
LENGTH = 64


class _Watching(Observer):
    """Passes the progress of training on and is silent otherwise."""

    def __init__(self, watch: Watcher | None) -> None:
        self._watch = watch

    @contextmanager
    def training(self) -> Iterator[Watcher | None]:
        yield self._watch


def train(rows: Path, model: str, out: Path, watch: Watcher | None = None) -> TrainedModel:
    """A fresh run on a table of rows; model, record and report are written to `out`."""
    shutil.rmtree(out, ignore_errors=True)
    request = TrainingRequest(
        data=rows,
        model=model,
        out=out,
        recipe=RECIPE,
        overrides=[f"length.max_length={LENGTH}"],
    )
    return run_finetune(request, _Watching(watch))


def accuracy(result: TrainedModel, baseline: str = "") -> float:
    """The test accuracy of the model, or of a baseline: majority, words."""
    record = result.record or {}
    figures = record["baselines"]["test"][baseline] if baseline else record["test"]["figures"]
    return float(figures["accuracy"])
