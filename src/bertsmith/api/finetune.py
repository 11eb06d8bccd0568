"""Fine-tuning from a file of labeled rows to a model folder with its evaluation and report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import NoneType
from typing import Any

import torch

from bertsmith.api.ablation import check_ablation, compare_ablation, run_ablation
from bertsmith.api.correction import run_correction
from bertsmith.api.finetune_request import FinetunedModel, FinetuneRequest
from bertsmith.api.observer import Observer, executing
from bertsmith.api.writing import run_writing
from bertsmith.config import override
from bertsmith.errors import ConfigError, check_type
from bertsmith.evaluation.length_table import length_table
from bertsmith.files.atomic_file import write_staged
from bertsmith.files.atomic_folder import make_folder
from bertsmith.folders.encoders import check_encoder, encoder_tokenizer
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits
from bertsmith.labeled.survey.survey import survey
from bertsmith.report.finetune import write_finetune_report
from bertsmith.report.finetune.model_card import model_card
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import first_then_others
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.finetune import finetune as training
from bertsmith.training.finetune.encoder_recipe import fit_recipe
from bertsmith.training.finetune.enrichment import extra_columns
from bertsmith.training.finetune.finetune import FinetuneJob
from bertsmith.training.finetune.recipe import FinetuneRecipe
from bertsmith.training.finetune.record import RecordSource, write_record
from bertsmith.training.loop.run import Outcome
from bertsmith.training.repeat.finetune_runs import finetune_folds, finetune_seeds

SPLIT = "split.json"
CARD = "README.md"
TRAININGS: Mapping[
    str, Callable[[FinetuneRequest, Observer | None, StopRequest | None], FinetunedModel]
] = {"write": run_writing, "similar": run_writing, "correct": run_correction}
"""Tasks with a training of their own; all others learn from labeled rows."""
LOW_HEAD_RATE = 1e-3  # a learning rate below which a head alone hardly learns


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
) -> FinetunedModel:
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
    request = FinetuneRequest(
        data=Path(data),
        model=model,
        out=Path(out),
        recipe=recipe,
        overrides=[override(name, value) for name, value in (settings or {}).items()],
        spec=spec or DataSpec(),
        seeds=seeds,
        device=device,
    )
    return run_finetune(request)


def run_finetune(
    request: FinetuneRequest, observer: Observer | None = None, *, stop: StopRequest | None = None
) -> FinetunedModel:
    """Read, train, evaluate and report, as the request says."""
    training = TRAININGS.get(request.spec.task or "", _run_labeled)
    return training(request, observer, stop)


def _run_labeled(
    request: FinetuneRequest, observer: Observer | None, stop: StopRequest | None
) -> FinetunedModel:
    if request.folds is not None and request.seeds > 1:
        raise ConfigError("give seeds or folds, not both")
    recipe = request.read_recipe(request.spec.task)  # mistakes here and in the name of the
    check_ablation(recipe, request)
    check_encoder(request.model)  # model come before the reading
    recipe = fit_recipe(recipe, request.model)
    with executing(recipe.run, request.out, observer, device=request.device, stop=stop) as (
        execution,
        observer,
    ):
        return _executed(request, recipe, execution, observer)


def with_columns(spec: DataSpec, recipe: FinetuneRecipe) -> DataSpec:
    """The spec with the further columns that the recipe reads."""
    read = extra_columns(recipe)
    extra = tuple(spec.extra or ())
    added = tuple(name for name in read if name not in extra)
    # Not `changed`: a spec remembers which fields were set.
    return spec.model_copy(update={"extra": (*extra, *added)}) if added else spec


def _executed(
    request: FinetuneRequest, recipe: FinetuneRecipe, execution: Execution, observer: Observer
) -> FinetunedModel:
    rate = recipe.optimizer.head_lr or recipe.optimizer.lr
    if recipe.encoder.frozen and rate is not None and rate < LOW_HEAD_RATE:
        observer.note(
            f"only the head is trained (encoder.frozen), and a learning rate of {rate:g} is low "
            "for that; without one it is chosen by the size of the vectors"
        )
    splits = read_rows(request, recipe, execution, observer)
    job = finetune_job(request, splits)
    sections = _survey(job, splits, observer)
    with observer.training() as watch:
        outcome, chosen, several = _trained(request, job, execution, observer, watch)
    if outcome.status != "stopped":
        outcome = run_ablation(job, outcome, execution, observer)
    first = execution.ranks.is_first
    if outcome.status == "stopped" or not first:
        return FinetunedModel(folder=request.out, outcome=outcome, is_first=first)
    source = RecordSource(
        job=job,
        splits=splits,
        run=chosen,
        precision=execution.precision.name,
        threads=torch.get_num_threads(),
        more={**sections, **several},
    )
    source = replace(source, more={**source.more, **compare_ablation(source, execution)})
    record = write_record(source, device=str(execution.device))
    report = write_finetune_report(job.folder, record)
    write_staged(job.folder / CARD, model_card(record, name=job.folder.name).encode())
    return FinetunedModel(folder=job.folder, outcome=outcome, record=record, report=report)


def read_rows(
    request: FinetuneRequest, recipe: FinetuneRecipe, execution: Execution, observer: Observer
) -> Splits:
    """The rows of each split; a folder made for nothing is removed again."""
    new = not request.out.exists()

    def read() -> Splits:
        make_folder(request.out)
        return load_splits(
            request.data,
            with_columns(request.spec, recipe),
            seed=request.split_seed,
            shares=request.shares,
            on_error=request.on_error,
            saved=request.out / SPLIT,
            also=request.files,
        )

    try:
        splits = first_then_others(execution.ranks, read)
    except BaseException:
        if new:
            with suppress(OSError):
                request.out.rmdir()
        raise
    observer.data(request.data, splits.specs["train"])
    for remark in splits.notes:
        observer.note(remark)
    return splits


def finetune_job(request: FinetuneRequest, splits: Splits) -> FinetuneJob:
    """The job on all rows, with the recipe of their task."""
    spec = splits.specs["train"]
    if spec.task is None:
        raise ConfigError(f"{request.data}: the task of these rows is not clear; set --task")
    return FinetuneJob(
        recipe=fit_recipe(request.read_recipe(spec.task), request.model),
        task=spec.task,
        model=request.model,
        train=splits.train,
        dev=splits.dev,
        out=request.out,
        accept=request.accept,
        language=request.spec.language,
        spec=spec,
    )


def _survey(job: FinetuneJob, splits: Splits, observer: Observer) -> dict[str, Any]:
    """Survey and length table, for the observer and for the record."""
    findings = survey(splits)
    lengths = job.recipe.length
    table = length_table(splits, encoder_tokenizer(job.model), windows=lengths.stride is not None)
    observer.lines([*findings.lines(), *table.lines(lengths.max_length)])
    return {"survey": findings.to_json(), "lengths": table.to_json(lengths.max_length)}


def _trained(
    request: FinetuneRequest,
    job: FinetuneJob,
    execution: Execution,
    observer: Observer,
    watch: Any,
) -> tuple[Outcome, Path, dict[str, Any]]:
    """How training ended, the folder of the chosen run, and what several runs add to the record."""
    if request.folds is None and request.seeds == 1:
        return training.finetune(job, execution=execution, watch=watch).outcome, job.folder, {}
    how: dict[str, Any] = {"execution": execution, "watch": watch, "notice": observer.note}
    if request.folds is not None:
        column = request.spec.group
        group = f"column {column}" if isinstance(column, int) else column
        many = finetune_folds(job, request.folds, group=group, **how)
    else:
        first = job.recipe.run.seed
        many = finetune_seeds(job, range(first, first + request.seeds), **how)
    if many.best is None:
        return many.outcome, job.folder, {}
    return many.outcome, many.best.folder, many.to_json()
