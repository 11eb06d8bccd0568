"""Pre-training from a recipe and a corpus to a model folder with its learning curves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any

from bertsmith.api.observer import Observer, executing
from bertsmith.api.train import TrainedModel
from bertsmith.config import overrides_of
from bertsmith.errors import ConfigError, check_type
from bertsmith.report.curves import write_report
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.pretrain import pretrain as training
from bertsmith.training.pretrain.pretrain import Job
from bertsmith.training.pretrain.recipe import PretrainRecipe, load_recipe


def pretrain(
    recipe: str | Path | PretrainRecipe,
    corpus: str | Path,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    init: str | Path | None = None,
    device: str | None = None,
) -> TrainedModel:
    """Pre-train on a corpus; the same call again resumes a run that was interrupted.

    `recipe` is a name, a file, or a recipe made in Python (with a program of one's own, say);
    `settings` are by dotted name, such as `{"schedule.steps": 1000}`; `init` is a model to
    continue from.
    """
    check_type("recipe", recipe, str, Path, PretrainRecipe)
    check_type("corpus", corpus, str, Path)
    check_type("out", out, str, Path)
    check_type("settings", settings, Mapping, NoneType)
    if isinstance(recipe, PretrainRecipe):
        if settings:
            raise ConfigError("settings go with a recipe by name; change the recipe object instead")
    else:
        recipe = load_recipe(recipe, overrides_of(settings))
    job = Job(
        recipe=recipe,
        corpus=Path(corpus),
        out=Path(out),
        init=None if init is None else str(init),
    )
    return run_pretrain(job, device=device)


def run_pretrain(
    job: Job,
    observer: Observer | None = None,
    *,
    device: str | None = None,
    stop: StopRequest | None = None,
) -> TrainedModel:
    """Train, write the model folder and its report."""
    with executing(job.recipe.run, job.out, observer, device=device, stop=stop) as (
        execution,
        observer,
    ):
        with observer.training() as watch:
            outcome = training.pretrain(job, execution=execution, watch=watch, notice=observer.note)
        if not execution.ranks.is_first:
            return TrainedModel(folder=job.out, outcome=outcome, is_first=False)
    title = f"{job.recipe.about.summary or 'pre-training'}: {job.out.name}"
    return TrainedModel(folder=job.out, outcome=outcome, report=write_report(job.out, title))
