"""`bertsmith pretrain`: from shards to a pre-trained model; the same command resumes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertsmith.cli.shared.options import (
    COMPUTE,
    DATA,
    MODEL,
    TRAINING,
    Accept,
    Quiet,
    RunFolder,
    Seed,
    Set,
    Threads,
    TrainingPrecision,
    overrides,
    spread,
)
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.api.pretrain import PretrainedModel
    from bertsmith.training.pretrain.pretrain import Job

Recipe = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="Recipe name (see `bertsmith recipes`) or .toml file."),
]
Shards = Annotated[
    Path,
    typer.Option(
        "--corpus",
        metavar="SHARDS",
        help="Corpus folder made by `bertsmith corpus build`.",
        rich_help_panel=DATA,
    ),
]
Size = Annotated[
    Literal["tiny", "mini", "small", "medium", "base", "large"] | None,
    typer.Option(
        "--size",
        help="Model size, layers x width: 2x128, 4x256, 4x512, 8x512, 12x768, 24x1024.",
        rich_help_panel=MODEL,
    ),
]
Init = Annotated[
    str | None,
    typer.Option(
        "--init",
        metavar="MODEL",
        help="Continue pre-training from this model; it must have the corpus's vocabulary.",
        rich_help_panel=MODEL,
    ),
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", min=1, help="Number of training steps.", rich_help_panel=TRAINING),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        help="Training time instead of steps: 20m, 1h30m; the schedule is fitted to it.",
        rich_help_panel=TRAINING,
    ),
]
Devices = Annotated[
    int | None,
    typer.Option(
        "--devices", min=1, help="Number of data-parallel processes.", rich_help_panel=COMPUTE
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify-resume",
        help="Kill short runs of this recipe and verify that they resume exactly.",
        rich_help_panel=TRAINING,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainOptions:
    """What is trained and how long: the most used settings of the recipe by short names."""

    size: Size = None
    init: Init = None
    steps: Steps = None
    budget: Budget = None
    seed: Seed = None
    set: Set = None

    def overrides(self) -> list[str]:
        """The settings that were given, as --set would take them."""
        if self.steps is not None and self.budget is not None:
            raise ConfigError("give --steps or --budget, not both")
        if self.size is not None and self.init is not None:
            raise ConfigError("--init determines the size; leave out --size")
        budget = None if self.budget is None else f'"{self.budget}"'
        short = {
            "model.size": self.size,
            "schedule.steps": self.steps,
            "schedule.budget": budget,
            "run.seed": self.seed,
        }
        return [*(self.set or []), *overrides(short)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainCompute:
    """Processes, precision and threads: short names for the section `run` of the recipe."""

    devices: Devices = None
    precision: TrainingPrecision = None
    threads: Threads = None

    def overrides(self) -> list[str]:
        """The settings that were given, as --set would take them."""
        return overrides(
            {
                "run.devices": self.devices,
                "run.precision": self.precision,
                "run.threads": self.threads,
            }
        )


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
    place: PretrainCompute,
    resuming: ResumeOptions,
    quiet: Quiet = False,
) -> None:
    """Pre-train a model on shards; the same command resumes an interrupted run.

    Examples:

        bertsmith pretrain bert --corpus shards --out my-bert

        bertsmith pretrain fast --corpus shards --out my-bert --budget 2h --size small

        bertsmith pretrain bert-wwm --init old-bert --corpus shards --out new-bert --steps 2000
    """
    given = [*plan.overrides(), *place.overrides()]
    job = _job(recipe, given, corpus, out, plan.init, resuming.accept or [])
    if resuming.verify_resume:
        _prove(job)
        return
    result = _trained(job, quiet=quiet)
    if result.is_first:
        _print(result)
    if result.outcome.exit_code:
        raise typer.Exit(result.outcome.exit_code)


def _job(
    named: str, given: list[str], corpus: Path, out: Path, init: str | None, accept: list[str]
) -> Job:
    from bertsmith.training.pretrain.pretrain import Job
    from bertsmith.training.pretrain.recipe import load_recipe

    recipe = load_recipe(named, given)
    return Job(recipe=recipe, corpus=corpus, out=out, init=init, accept=accept)


def _trained(job: Job, *, quiet: bool) -> PretrainedModel:
    from bertsmith.api.pretrain import run_pretrain
    from bertsmith.cli.shared.training_process import training_process
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.cli.views.pretrain import watching

    observer = ConsoleObserver(quiet=quiet, watching=lambda: watching(quiet=quiet))
    with training_process(job.recipe.run) as stop:
        return run_pretrain(job, observer, stop=stop)


def _print(result: PretrainedModel) -> None:
    """How the run ended, on standard output."""
    from bertsmith.cli.shared.console import duration
    from bertsmith.cli.views.pretrain import held_out_lines

    outcome = result.outcome
    spent = f"{outcome.step:,} steps, {outcome.tokens:,} tokens, {duration(outcome.seconds)}"
    if outcome.status == "stopped":
        sys.stdout.write(
            f"stopped by {outcome.signal} after {spent}; saved, the same command resumes\n"
        )
        return
    lines = [f"{result.folder}: {spent}"]
    if outcome.evaluation is not None:
        mean = " (averaged weights)" if outcome.chosen == "average" else ""
        lines += [f"held-out text{mean}:", *held_out_lines(outcome.evaluation)]
    lines.append(f"curves: {result.report}")
    sys.stdout.write("\n".join(lines) + "\n")


def _prove(job: Job) -> None:
    from bertsmith.training.pretrain.resume_proof import verify_resume

    def say(line: str) -> None:
        sys.stderr.write(f"  {line}\n")

    proof = verify_resume(job, say=say)
    lines = [f"{value[:16]}  {name}" for name, value in proof.files.items()]
    lines.append(
        f"verified: killed after steps {', '.join(map(str, proof.kills))} of {proof.steps} and "
        f"resumed, all {len(proof.files)} files are the same, bit for bit, as without a kill"
    )
    sys.stdout.write("\n".join(lines) + "\n")
