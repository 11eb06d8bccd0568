"""The kind of training that reads labeled rows: classes, scores, tags, answers, choices."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from bertsmith.errors import ConfigError
from bertsmith.evaluation.length_table import length_table
from bertsmith.files.atomic_folder import make_folder
from bertsmith.folders.encoders import check_encoder, encoder_tokenizer
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits
from bertsmith.labeled.survey.survey import survey
from bertsmith.report.finetune.model_card import model_card
from bertsmith.report.finetune.page import finetune_sections
from bertsmith.report.finetune.result import finetune_result
from bertsmith.training.execution.rank_sync import first_then_others
from bertsmith.training.kind import Reading, Repeating, TrainingKind, TrainingRequest
from bertsmith.training.kinds.labeled.ablation import check_ablation, run_ablation
from bertsmith.training.kinds.labeled.encoder_recipe import fit_recipe
from bertsmith.training.kinds.labeled.enrichment import extra_columns
from bertsmith.training.kinds.labeled.folds import finetune_folds
from bertsmith.training.kinds.labeled.learner import (
    FinetunedTask,
    FinetuneJob,
    labeled_learner,
)
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe, load_finetune_recipe
from bertsmith.training.kinds.labeled.record import prove_labeled
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.repeat.repeat import RepeatedRuns

SPLIT = "split.json"
CARD = "README.md"
LOW_HEAD_RATE = 1e-3  # a learning rate below which a head alone hardly learns

FinetuneReading = Reading[FinetuneRecipe]


def labeled_recipe(request: TrainingRequest, task: str | None = None) -> FinetuneRecipe:
    """The recipe by name or path, or the default of the task, with the overrides."""
    task = request.spec.task if task is None else task
    return load_finetune_recipe(request.recipe, request.overrides, task=task)


def _check(request: TrainingRequest, recipe: FinetuneRecipe) -> None:
    check_ablation(request, recipe)
    check_encoder(request.model)


def read_splits(reading: FinetuneReading) -> Splits:
    """The rows of each split; a folder made for nothing is removed again."""
    request, audience = reading.request, reading.audience
    new = not request.out.exists()
    spec = with_columns(request.spec, reading.recipe)

    def read() -> Splits:
        make_folder(request.out)
        return load_splits(
            request.data,
            spec,
            seed=request.split_seed,
            shares=request.shares,
            on_error=request.on_error,
            saved=request.out / SPLIT,
            also=request.files,
        )

    try:
        splits = first_then_others(reading.execution.ranks, read)
    except BaseException:
        if new:
            with suppress(OSError):
                request.out.rmdir()
        raise
    audience.data(request.data, splits.specs["train"])
    for remark in splits.notes:
        audience.note(remark)
    return splits


def with_columns(spec: DataSpec, recipe: FinetuneRecipe) -> DataSpec:
    """The spec with the further columns that the recipe reads."""
    read = extra_columns(recipe)
    extra = tuple(spec.extra or ())
    added = tuple(name for name in read if name not in extra)
    # Not `changed`: a spec remembers which fields were set.
    return spec.model_copy(update={"extra": (*extra, *added)}) if added else spec


def job_on(request: TrainingRequest, splits: Splits) -> FinetuneJob:
    """The job on all rows, with the recipe of their task."""
    rows = LabeledRows.of_splits(splits, language=request.spec.language)
    task = None if rows.spec is None else rows.spec.task
    if task is None:
        raise ConfigError(f"{request.data}: the task of these rows is not clear; set --task")
    return FinetuneJob(
        recipe=fit_recipe(labeled_recipe(request, task), request.model),
        task=task,
        model=request.model,
        rows=rows,
        out=request.out,
        accept=request.accept,
    )


def _read(reading: FinetuneReading) -> FinetuneJob:
    """The job on all rows, with their survey and a table of lengths."""
    request, audience = reading.request, reading.audience
    recipe = fit_recipe(reading.recipe, request.model)
    rate = recipe.optimizer.head_lr or recipe.optimizer.lr
    if recipe.encoder.frozen and rate is not None and rate < LOW_HEAD_RATE:
        audience.note(
            f"only the head is trained (encoder.frozen), and a learning rate of {rate:g} is low "
            "for that; without one it is chosen by the size of the vectors"
        )
    splits = read_splits(reading)
    job = job_on(request, splits)
    findings, lengths = survey(splits), job.recipe.length
    windows = lengths.stride is not None
    table = length_table(splits, encoder_tokenizer(job.model), windows=windows)
    audience.lines([*findings.lines(), *table.lines(lengths.max_length)])
    found = {"survey": findings.to_json(), "lengths": table.to_json(lengths.max_length)}
    return replace(job, rows=replace(job.rows, findings=found))


def _folds(job: FinetuneJob, repeating: Repeating) -> RepeatedRuns[FinetunedTask]:
    column = repeating.request.spec.group
    return finetune_folds(
        job,
        repeating.folds,
        group=f"column {column}" if isinstance(column, int) else column,
        execution=repeating.execution,
        watch=repeating.watch,
        notice=repeating.notice,
    )


LABELED = TrainingKind(
    name="labeled",
    recipe=labeled_recipe,
    check=_check,
    read=_read,
    learner=lambda: labeled_learner(cache={}),
    prove=prove_labeled,
    sections=finetune_sections,
    result=finetune_result,
    folds=_folds,
    further=run_ablation,
    documents=lambda record, name: {CARD: model_card(record, name=name)},
)
