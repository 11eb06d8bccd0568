"""`bertsmith pretrain`: from shards to a pre-trained model; the same command resumes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.console import write_lines, write_remarks
from bertsmith.cli.shared.options import (
    Accept,
    Budget,
    Quiet,
    RunFolder,
    Seed,
    Set,
    Steps,
    Threads,
    TrainingPrecision,
    overrides,
)
from bertsmith.cli.shared.options_of import spread
from bertsmith.config import Override
from bertsmith.errors import ConfigError
from bertsmith.hardware.environment import MOST_THREADS
from bertsmith.setting import COMPUTE, DATA, MODEL, TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.api.train import TrainedModel
    from bertsmith.training.pretrain.pretrain import Job

Recipe = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="Recipe name (see `bertsmith recipes`) or .toml file."),
]
Shards = Annotated[
    Path,
    Setting("Corpus folder made by `bertsmith corpus build`.", DATA, metavar="SHARDS"),
]
Size = Annotated[
    Literal["tiny", "mini", "small", "medium", "base", "large"] | None,
    Setting("Model size, layers x width: 2x128, 4x256, 4x512, 8x512, 12x768, 24x1024.", MODEL),
]
Init = Annotated[
    str | None,
    Setting(
        "Continue pre-training from this model; it must have the corpus's vocabulary.",
        MODEL,
        metavar="MODEL",
    ),
]
Devices = Annotated[
    int | None,
    Setting("Number of data-parallel processes.", COMPUTE, min=1, max=MOST_THREADS),
]
Verify = Annotated[
    bool,
    Setting("Kill short runs of this recipe and verify that they resume exactly.", TRAINING),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainOptions:
    """What is trained, how long and on what: short names for settings of the recipe."""

    size: Size = None
    init: Init = None
    steps: Steps = None
    budget: Budget = None
    seed: Seed = None
    set: Set = None

    devices: Devices = None
    precision: TrainingPrecision = None
    threads: Threads = None

    def overrides(self) -> list[Override]:
        """The settings that were given, as --set would take them."""
        if self.steps is not None and self.budget is not None:
            raise ConfigError("give --steps or --budget, not both")
        if self.size is not None and self.init is not None:
            raise ConfigError("--init determines the size; leave out --size")
        short = {
            "model.size": self.size,
            "schedule.steps": self.steps,
            "schedule.budget": self.budget,
            "run.seed": self.seed,
            "run.devices": self.devices,
            "run.precision": self.precision,
            "run.threads": self.threads,
        }
        return overrides(self.set, short)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """How an interrupted run resumes."""

    accept: Accept = None
    verify_resume: Verify = False


@spread
def pretrain(
    recipe: Recipe,
    corpus: Shards,
    out: RunFolder,
    plan: PretrainOptions,
    resuming: ResumeOptions,
    quiet: Quiet = False,
) -> None:
    """Pre-train a model on shards; the same command resumes an interrupted run.

    Examples:

        bertsmith pretrain bert --corpus shards --out my-bert

        bertsmith pretrain fast --corpus shards --out my-bert --budget 2h --size small

        bertsmith pretrain bert-wwm --init old-bert --corpus shards --out new-bert --steps 2000
    """
    from bertsmith.cli.views.results import pretrain_lines
    from bertsmith.training.pretrain.pretrain import Job
    from bertsmith.training.pretrain.recipe import load_recipe

    job = Job(
        recipe=load_recipe(recipe, plan.overrides()),
        corpus=corpus,
        out=out,
        init=plan.init,
        accept=resuming.accept or [],
    )
    if resuming.verify_resume:
        _prove(job)
        return
    result = _trained(job, quiet=quiet)
    if result.is_first:
        write_lines(pretrain_lines(result))
    if result.outcome.exit_code:
        raise typer.Exit(result.outcome.exit_code)


def _trained(job: Job, *, quiet: bool) -> TrainedModel:
    from bertsmith.api.pretrain import run_pretrain
    from bertsmith.cli.shared.training_process import training_process
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.cli.views.progress import watch_training

    observer = ConsoleObserver(quiet=quiet, watching=lambda: watch_training(quiet=quiet))
    with training_process(job.recipe.run) as stop:
        return run_pretrain(job, observer, stop=stop)


def _prove(job: Job) -> None:
    from bertsmith.training.pretrain.resume_proof import verify_resume

    proof = verify_resume(job, say=lambda line: write_remarks([f"  {line}"]))
    lines = [f"{value[:16]}  {name}" for name, value in proof.files.items()]
    lines.append(
        f"verified: killed after steps {', '.join(map(str, proof.kills))} of {proof.steps} and "
        f"resumed, all {len(proof.files)} files are the same, bit for bit, as without a kill"
    )
    write_lines(lines)
