"""The steps of `bertsmith finetune`: read, look, train, prove, tell."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.cli.shared.console import note
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.labeled.read.reader import OnError
    from bertsmith.labeled.spec import DataSpec
    from bertsmith.labeled.split.splits import Splits
    from bertsmith.training.execution.execution import Execution
    from bertsmith.training.finetune.finetune import FinetuneJob
    from bertsmith.training.finetune.recipe import FinetuneRecipe
    from bertsmith.training.loop.progress import Watcher
    from bertsmith.training.loop.run import Outcome

SPLIT = "split.json"
LITTLE_FOR_A_HEAD = 1e-3  # a rate below which a head alone hardly learns


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The request of the command line."""

    data: Path
    model: str
    out: Path
    recipe: str | None
    overrides: list[str]
    accept: list[str]
    given: DataSpec
    on_error: OnError
    files: Mapping[str, Path]
    shares: tuple[float, ...]
    split_seed: int
    seeds: int
    folds: int | None
    device: str | None

    def read_recipe(self, task: str | None) -> FinetuneRecipe:
        """The recipe by name, or the default of the task, with the overrides."""
        from bertsmith.training.finetune.recipe import load_finetune_recipe

        return load_finetune_recipe(self.recipe, self.overrides, task=task)


def run(request: Request, *, quiet: bool) -> int:
    """From rows to a proven folder; the exit code."""
    import torch

    from bertsmith.folders.read import read_folder
    from bertsmith.hardware.environment import thread_count
    from bertsmith.training.execution.execution import choose_execution, is_one_of_many
    from bertsmith.training.execution.launch import relaunch
    from bertsmith.training.execution.memory import keep_freed_memory
    from bertsmith.training.execution.stop import StopSignals

    recipe = request.read_recipe(request.given.task)  # fails before the data is read
    torch.set_num_threads(recipe.run.threads or thread_count())
    keep_freed_memory()
    read_folder(request.model)  # and so does an unknown model
    if recipe.run.devices > 1 and not is_one_of_many():
        relaunch(["-m", "bertsmith", *sys.argv[1:]], devices=recipe.run.devices)
    with StopSignals() as stop:
        execution = choose_execution(recipe.run, request.out, device=request.device, stop=stop)
        try:
            return _executed(request, recipe, execution, quiet=quiet)
        finally:
            execution.close()


def _executed(
    request: Request, recipe: FinetuneRecipe, execution: Execution, *, quiet: bool
) -> int:
    from bertsmith.cli.views.finetune import watching

    first = execution.ranks.is_first
    quiet = quiet or not first
    note(f"matmuls: {execution.precision.name} ({execution.precision.reason})", quiet=quiet)
    rate = recipe.optimizer.head_lr or recipe.optimizer.lr
    if recipe.encoder.frozen and rate is not None and rate < LITTLE_FOR_A_HEAD:
        note(
            f"only the head is trained (encoder.frozen): a learning rate of {rate:g} is low; "
            "without --lr it is chosen by the norm of the vectors",
            quiet=quiet,
        )
    splits = _rows(request, recipe, quiet=quiet)
    job = _job(request, splits)
    more = _look(job, splits, quiet=quiet)
    with watching(request.out, quiet=quiet) as watch:
        trained = _trained(request, job, execution, watch, quiet=quiet)
    if first:
        _tell(job, splits, trained, execution, more)
    return trained.outcome.exit_code


def _rows(request: Request, recipe: FinetuneRecipe, *, quiet: bool) -> Splits:
    """The rows of each part, and what was guessed of their files."""
    from bertsmith.labeled.split.splits import load_splits

    new = not request.out.exists()
    request.out.mkdir(parents=True, exist_ok=True)
    try:
        splits = load_splits(
            request.data,
            with_columns(request.given, recipe),
            seed=request.split_seed,
            shares=request.shares,
            on_error=request.on_error,
            saved=request.out / SPLIT,
            also=request.files,
        )
    except BaseException:
        if new:
            _remove_if_empty(request.out)
        raise
    if not quiet:
        sys.stderr.write(f"{request.data}, read as:\n")
        sys.stderr.writelines(f"  {line}\n" for line in splits.specs["train"].describe())
    for remark in splits.notes:
        note(remark, quiet=quiet)
    return splits


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as fault:
        note(f"{folder} stays: {fault.strerror}", quiet=True)


def with_columns(given: DataSpec, recipe: FinetuneRecipe) -> DataSpec:
    """What the user set, with the columns that the recipe reads."""
    read = (*recipe.head.meta, *recipe.auxiliary)
    extra = tuple(given.extra or ())
    added = tuple(name for name in read if name not in extra)
    return given.model_copy(update={"extra": (*extra, *added)}) if added else given


def _look(job: FinetuneJob, splits: Splits, *, quiet: bool) -> dict[str, Any]:
    """The survey and the length table, shown and kept for the record."""
    from bertsmith.evaluation.length_table import length_table
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.labeled.survey.survey import survey

    found = survey(splits)
    lengths = job.recipe.length
    windows = lengths.stride is not None
    table = length_table(splits, load_tokenizer(job.model), windows=windows)
    chosen = lengths.max_length
    if not quiet:
        sys.stderr.writelines(f"{line}\n" for line in [*found.lines(), *table.lines(chosen)])
    return {"survey": found.to_json(), "lengths": table.to_json(chosen)}


def _job(request: Request, splits: Splits) -> FinetuneJob:
    from bertsmith.training.finetune.finetune import FinetuneJob

    task = splits.specs["train"].task
    if task is None:
        raise ConfigError(f"{request.data}: the task cannot be inferred from the rows; set --task")
    return FinetuneJob(
        recipe=request.read_recipe(task),
        task=task,
        model=request.model,
        train=splits.train,
        dev=splits.dev,
        out=request.out,
        accept=request.accept,
        spec=splits.specs["train"],
        language=splits.specs["train"].stated("language"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """How training ended, the folder with its log, and what several runs add to the record."""

    outcome: Outcome
    folder: Path
    more: Mapping[str, Any]


def _trained(
    request: Request, job: FinetuneJob, execution: Execution, watch: Watcher | None, *, quiet: bool
) -> Trained:
    from bertsmith.training.finetune.finetune import finetune

    if request.seeds == 1 and request.folds is None:
        outcome = finetune(job, execution=execution, watch=watch).outcome
        return Trained(outcome=outcome, folder=job.folder, more={})

    def notice(message: str) -> None:
        note(message, quiet=quiet)

    if request.folds is not None:
        from bertsmith.training.finetune.repeat import finetune_folds

        many = finetune_folds(
            job,
            request.folds,
            group=_group(request.given.group),
            execution=execution,
            watch=watch,
            notice=notice,
        )
    else:
        from bertsmith.training.finetune.repeat import finetune_seeds

        first = job.recipe.run.seed
        seeds = range(first, first + request.seeds)
        many = finetune_seeds(job, seeds, execution=execution, watch=watch, notice=notice)
    outcome = many.result.outcome
    if many.best is None:
        return Trained(outcome=outcome, folder=job.folder, more={})
    return Trained(outcome=outcome, folder=many.best.folder, more=many.to_json())


def _group(column: str | int | None) -> str | None:
    """A column as the extras of an example call it."""
    return f"column {column}" if isinstance(column, int) else column


def _tell(
    job: FinetuneJob,
    splits: Splits,
    trained: Trained,
    execution: Execution,
    more: Mapping[str, Any],
) -> None:
    """Prove the finished folder and say on standard output what it is worth."""
    import torch

    from bertsmith.cli.views.finetune import result_lines, stopped_line
    from bertsmith.files.atomic_file import write_staged
    from bertsmith.report.finetune import write_finetune_report
    from bertsmith.report.finetune.model_card import model_card
    from bertsmith.training.finetune.record import RecordSource, write_record

    if trained.outcome.status == "stopped":
        sys.stdout.write(stopped_line(trained.outcome) + "\n")
        return
    making = RecordSource(
        job=job,
        splits=splits,
        run=trained.folder,
        precision=execution.precision.name,
        threads=torch.get_num_threads(),
        more={**more, **trained.more},
    )
    record = write_record(making, device=str(execution.device))
    page = write_finetune_report(job.folder, record)
    write_staged(job.folder / "README.md", model_card(record, name=job.folder.name).encode())
    sys.stdout.write("\n".join(result_lines(job.folder, record, page)) + "\n")
