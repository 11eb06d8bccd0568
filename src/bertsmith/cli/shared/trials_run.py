"""What commands of several small runs share: settings, rows, an execution, a folder."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.commands.finetune import (
    Batch,
    Device,
    MaxLength,
    Precision,
    Rate,
    Recipe,
    Seed,
    Set,
    Threads,
)
from bertsmith.cli.shared.console import note
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.cli.shared.data_options import Reading
    from bertsmith.labeled.split.splits import Splits
    from bertsmith.training.execution.execution import Execution
    from bertsmith.training.finetune.recipe import FinetuneRecipe
    from bertsmith.training.studies.trials import Trial, Trials

SPLIT = "split.json"
RUNS = "runs"  # the folder of those that go on
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Only errors and the result.")]
DevFile = Annotated[Path | None, typer.Option("--dev", help="The file of development rows.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """Settings of the recipe, some by a short name, and what it is computed on."""

    recipe: Recipe = None
    set: Set = None
    max_length: MaxLength = None
    lr: Rate = None
    batch: Batch = None
    precision: Precision = None
    threads: Threads = None
    seed: Seed = None
    device: Device = None

    def read(
        self, task: str | None, *, named: str | None = None, epochs: float | None = None
    ) -> FinetuneRecipe:
        """The recipe with what was given; `named` is taken if the user named none."""
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
        given = [f"{key}={value}" for key, value in short.items() if value is not None]
        return load_finetune_recipe(self.recipe or named, [*(self.set or []), *given], task=task)


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
    """The folder of the runs; without one, a folder that goes away at the end."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        yield out
        return
    with tempfile.TemporaryDirectory(prefix="bertsmith-") as folder:
        yield Path(folder)


def read_splits(
    data: Path,
    reading: Reading,
    recipe: FinetuneRecipe,
    out: Path,
    *,
    dev: Path | None,
    quiet: bool,
) -> Splits:
    """The rows of each part; what was guessed of their files is told."""
    from bertsmith.cli.shared.finetune_run import with_columns
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
    for said in splits.notes:
        note(said, quiet=quiet)
    return splits


def task_of(splits: Splits, data: Path) -> str:
    """What is asked of the rows."""
    task = splits.specs["train"].task
    if task is None:
        raise ConfigError(f"{data}: what is asked of the rows is not clear; set --task")
    return task


def weights_mark(model: str) -> str:
    """What tells the weights of a model folder from later ones in its place."""
    from bertsmith.folders.read import read_folder

    home = read_folder(model).path
    files = sorted(path for path in home.rglob("*.safetensors") if path.is_file())
    return " ".join(
        f"{path.name}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files
    )


def run_shown(trials: Sequence[Trial], out: Path, *, quiet: bool, go_on: bool = False) -> Trials:
    """Make the runs, told on standard error; one that a signal stops ends the command."""
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


def write_json(told: object) -> None:
    """JSON on standard output; nan is null."""
    from bertsmith.files.strict_json import json_values

    sys.stdout.write(json.dumps(json_values(told), ensure_ascii=False, indent=2) + "\n")


def write_lines(lines: Sequence[str]) -> None:
    """Lines on standard output, safe for terminals."""
    from bertsmith.cli.app import printable

    sys.stdout.write(printable("\n".join(lines)) + "\n")
