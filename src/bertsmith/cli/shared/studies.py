"""Commands of several small runs: their options, how they are run, their tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bertsmith.cli.shared.console import note
from bertsmith.cli.shared.options import DevFile, DevRows, StudyFolder, TrainRows, TrialEpochs
from bertsmith.cli.shared.recipe_options import RecipeOptions
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.api.finetune import FinetuneRequest
    from bertsmith.cli.shared.data_options import DataOptions
    from bertsmith.training.execution.execution import Execution, RunSettings
    from bertsmith.training.studies.trials import Trial, Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(RecipeOptions):
    """Rows and epochs of each run, and where finished runs are stored."""

    epochs: TrialEpochs = 2.0
    rows: TrainRows = 1_000
    dev_rows: DevRows = 500
    dev: DevFile = None
    out: StudyFolder = None

    def request(self, data: Path, model: str, reading: DataOptions, out: Path) -> FinetuneRequest:
        """The fine-tuning that all runs are variations of."""
        from bertsmith.api.finetune import FinetuneRequest

        return FinetuneRequest(
            data=data,
            model=model,
            out=out,
            recipe=self.recipe,
            overrides=self.overrides(),
            spec=reading.labeled(),
            on_error=reading.on_error,
            files={} if self.dev is None else {"dev": self.dev},
            device=self.device,
        )


def run_study(
    make_trials: Callable[[Execution], Sequence[Trial]],
    run: RunSettings,
    out: Path,
    *,
    device: str | None,
    quiet: bool,
    keep_going: bool = False,
) -> Trials:
    """Run what `make_trials` gives, with progress on standard error; a signal ends the command."""
    from bertsmith.cli.shared.training_process import training_process
    from bertsmith.cli.views.progress import watch_trials
    from bertsmith.cli.views.results import stopped_line
    from bertsmith.training.execution.execution import choose_execution
    from bertsmith.training.studies.trials import Trials, run_trials

    if run.devices > 1:
        raise ConfigError(
            f"run.devices={run.devices}: the runs of this command share one process; leave it out, "
            "several devices are for finetune and pretrain"
        )
    out.mkdir(parents=True, exist_ok=True)
    with training_process(run) as stop, watch_trials(quiet=quiet) as watch:
        execution = choose_execution(run, out, device=device, stop=stop)
        try:
            trials = make_trials(execution)
            if not trials:
                return Trials(rows=())
            done = run_trials(
                trials,
                out,
                watch=watch,
                notice=lambda message: note(message, quiet=quiet),
                keep_going=keep_going,
            )
        finally:
            execution.close()
    if done.stopped is not None:
        sys.stderr.write(stopped_line(done.stopped) + "\n")
        raise typer.Exit(done.stopped.exit_code)
    return done


def figure_text(value: float | None) -> str:
    """A metric in a table."""
    return "-" if value is None or value != value else f"{value:.4f}"


def shown_figures(task: str, figures: Mapping[str, float | None], first: str) -> list[str]:
    """The names of the metrics shown in a table, the deciding one first."""
    from bertsmith.tasks.kinds import task_kind

    kind = task_kind(task)
    names = [name for name in kind.figures or (kind.metric.main,) if name in figures]
    return list(dict.fromkeys([first, *names])) if first in figures else names
