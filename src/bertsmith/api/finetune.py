"""Fine-tuning from a file of rows to a model folder with its evaluation and report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from bertsmith.api.kinds import finetuning_kind
from bertsmith.api.observer import Observer
from bertsmith.api.train import TrainedModel, train
from bertsmith.config import overrides_of
from bertsmith.errors import check_type
from bertsmith.labeled.spec import DataSpec
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.kind import TrainingRequest


def finetune(
    data: str | Path,
    *,
    model: str,
    out: str | Path,
    recipe: str | Path | None = None,
    settings: Mapping[str, Any] | None = None,
    spec: DataSpec | None = None,
    seeds: int = 1,
    device: str | None = None,
) -> TrainedModel:
    """Fine-tune `model` on labeled rows; the same call again resumes a run that was interrupted.

    `data` is one file (split for good) or a folder of train, dev and test files. `settings` are
    those of a recipe by dotted name, such as `{"plan.epochs": 2}`; `spec` sets what would
    otherwise be detected of the columns.
    """
    check_type("data", data, str, Path)
    check_type("out", out, str, Path)
    check_type("recipe", recipe, str, Path, NoneType)
    check_type("settings", settings, Mapping, NoneType)
    check_type("spec", spec, DataSpec, NoneType)
    check_type("seeds", seeds, int)
    request = TrainingRequest(
        data=Path(data),
        model=model,
        out=Path(out),
        recipe=recipe,
        overrides=overrides_of(settings),
        spec=spec or DataSpec(),
        seeds=seeds,
        device=device,
    )
    return run_finetune(request)


def run_finetune(
    request: TrainingRequest, observer: Observer | None = None, *, stop: StopRequest | None = None
) -> TrainedModel:
    """Read, train, evaluate and report, as the request says."""
    return train(finetuning_kind(request), request, observer, stop=stop)
