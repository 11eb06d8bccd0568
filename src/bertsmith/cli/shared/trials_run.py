"""What commands of several small runs share: settings, rows, an execution, a folder."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bertsmith.cli.shared.console import note
from bertsmith.cli.shared.options import (
    BatchSize,
    LearningRate,
    MaxLength,
    RecipeOption,
    Seed,
    Set,
    Threads,
    TrainingDevice,
    TrainingPrecision,
    overrides,
)
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.cli.shared.data_options import DataOptions
    from bertsmith.labeled.split.splits import Splits
    from bertsmith.training.execution.execution import Execution
    from bertsmith.training.finetune.finetune import FinetuneJob
    from bertsmith.training.finetune.recipe import FinetuneRecipe
    from bertsmith.training.studies.trials import Trial, Trials

SPLIT = "split.json"
RUNS = "runs"  # the folder of those that resume


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """The recipe, its most used settings by short names, and what it is computed on."""

    recipe: RecipeOption = None
    lr: LearningRate = None
    batch: BatchSize = None
    max_length: MaxLength = None
    seed: Seed = None
    set: Set = None
    device: TrainingDevice = None
    precision: TrainingPrecision = None
    threads: Threads = None

    def read(
        self, task: str | None, *, named: str | None = None, epochs: float | None = None
    ) -> FinetuneRecipe:
        """The recipe with the options that were given; `named` is the default recipe."""
        from bertsmith.training.finetune.recipe import load_finetune_recipe

        short = {
            "length.max_length": self.max_length,
            "optimizer.lr": self.lr,
            "plan.batch": self.batch,
            "plan.epochs": epochs,
            "run.precision": self.precision,
            "run.threads": self.threads,
            "run.seed": self.seed,
        }
        given = [*(self.set or []), *overrides(short)]
        return load_finetune_recipe(self.recipe or named, given, task=task)


@contextmanager
def computing(recipe: FinetuneRecipe, out: Path, device: str | None) -> Iterator[Execution]:
    """How the runs are executed, as by `bertsmith finetune`."""
    import torch

    from bertsmith.hardware.environment import thread_count
    from bertsmith.training.execution.execution import choose_execution
    from bertsmith.training.execution.memory import keep_freed_memory
    from bertsmith.training.execution.stop import StopSignals

    run = recipe.run
    torch.set_num_threads(run.threads or thread_count())
    keep_freed_memory()
    if run.devices > 1:
        raise ConfigError(
            f"run.devices={run.devices}: the runs of this command share one process; leave it out, "
            "several devices are for finetune and pretrain"
        )
    with StopSignals() as stop:
        execution = choose_execution(run, out, device=device, stop=stop)
        try:
            yield execution
        finally:
            execution.close()


@contextmanager
def kept_in(out: Path | None) -> Iterator[Path]:
    """The folder of the runs; without one, a temporary folder."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="bertsmith-") as folder:
        yield Path(folder)


def read_splits(
    data: Path,
    reading: DataOptions,
    recipe: FinetuneRecipe,
    out: Path,
    *,
    dev: Path | None,
    quiet: bool,
) -> Splits:
    """The rows of each split; how their files are read is printed."""
    from bertsmith.api.finetune import with_columns
    from bertsmith.labeled.split.splits import load_splits

    splits = load_splits(
        data,
        with_columns(reading.labeled(), recipe),
        on_error=reading.on_error,
        saved=out / SPLIT,
        also={"dev": dev} if dev is not None else {},
    )
    if not quiet:
        sys.stderr.write(f"{data}, read as:\n")
        sys.stderr.writelines(f"  {line}\n" for line in splits.specs["train"].describe())
    for remark in splits.notes:
        note(remark, quiet=quiet)
    return splits


def small_job(
    recipe: FinetuneRecipe,
    task: str,
    model: str,
    splits: Splits,
    rows: tuple[int, int],
    folder: Path,
) -> FinetuneJob:
    """A fine-tuning on so many training and dev rows, stratified by label."""
    from bertsmith.labeled.split.stratify import some_rows
    from bertsmith.tasks.kinds import task_kind
    from bertsmith.training.finetune.finetune import FinetuneJob

    seed = recipe.run.seed
    return FinetuneJob(
        recipe=recipe,
        task=task,
        model=model,
        train=some_rows(splits.train, rows[0], seed=seed),
        dev=some_rows(splits.dev, rows[1], seed=seed),
        out=folder / RUNS,
        known=task_kind(task).known(splits.train),
        language=splits.specs["train"].stated("language"),
    )


def task_of(splits: Splits, data: Path) -> str:
    """The task of the rows."""
    task = splits.specs["train"].task
    if task is None:
        raise ConfigError(f"{data}: the task cannot be inferred from the rows; set --task")
    return task


def weights_mark(model: str) -> str:
    """A fingerprint of a model folder's weights by file size and time."""
    from bertsmith.folders.read import read_folder

    home = read_folder(model).path
    files = sorted(path for path in home.rglob("*.safetensors") if path.is_file())
    return " ".join(
        f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files
    )


def run_shown(trials: Sequence[Trial], out: Path, *, quiet: bool, go_on: bool = False) -> Trials:
    """Run the trials, shown on standard error; a signal ends the command."""
    from bertsmith.cli.views.finetune import stopped_line
    from bertsmith.cli.views.trials import watching
    from bertsmith.training.studies.trials import run_trials

    with watching(quiet=quiet) as watch:
        done = run_trials(
            trials,
            out,
            watch=watch,
            notice=lambda message: note(message, quiet=quiet),
            go_on=go_on,
        )
    if done.stopped is not None:
        sys.stderr.write(stopped_line(done.stopped) + "\n")
        raise typer.Exit(done.stopped.exit_code)
    return done


def write_json(record: object) -> None:
    """JSON on standard output; nan is null."""
    from bertsmith.files.strict_json import json_values

    sys.stdout.write(json.dumps(json_values(record), ensure_ascii=False, indent=2) + "\n")


def write_lines(lines: Sequence[str]) -> None:
    """Lines on standard output, safe for terminals."""
    from bertsmith.cli.app import printable

    sys.stdout.write(printable("\n".join(lines)) + "\n")
