"""Commands of several small runs: their options, how they are run, their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from bertsmith.cli.shared.console import write_remarks
from bertsmith.cli.shared.options import DevFile, DevRows, StudyFolder, TrainRows, TrialEpochs
from bertsmith.cli.shared.recipe_options import RecipeOptions
from bertsmith.errors import InputFileError

if TYPE_CHECKING:
    from bertsmith.api.observer import Observer
    from bertsmith.cli.shared.data_options import DataOptions
    from bertsmith.training.execution.execution import Execution, RunSettings
    from bertsmith.training.execution.ranks import Ranks
    from bertsmith.training.kind import TrainingRequest
    from bertsmith.training.repeat.trials import Trial, Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions(RecipeOptions):
    """Rows and epochs of each run, and where finished runs are stored."""

    epochs: TrialEpochs = 2.0
    train_rows: TrainRows = 1_000
    dev_rows: DevRows = 500
    dev: DevFile = None
    out: StudyFolder = None

    def request(self, data: Path, model: str, reading: DataOptions) -> TrainingRequest:
        """The fine-tuning that all runs are variations of; its folder is the study's."""
        from bertsmith.training.kind import TrainingRequest

        return TrainingRequest(
            data=data,
            model=model,
            out=self.out or Path(),
            recipe=self.recipe,
            overrides=self.overrides(),
            spec=reading.labeled(),
            on_error=reading.on_error,
            files={} if self.dev is None else {"dev": self.dev},
            device=self.device,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Where a study is stored, how its runs are executed, and who observes it.

    With several devices, every process of the command has one; the first one prints.
    """

    folder: Path
    execution: Execution
    observer: Observer
    quiet: bool

    def run(self, trials: Sequence[Trial], *, keep_going: bool = False) -> Trials:
        """Run what is not finished, with progress on standard error.

        A signal ends the command; so does the end of all runs in any process but the first.
        """
        from bertsmith.cli.views.progress import watch_trials
        from bertsmith.cli.views.results import stopped_line
        from bertsmith.training.repeat.trials import Trials, held, run_trials

        done, ranks = Trials(rows=()), self.execution.ranks
        if trials:
            quiet = self.quiet or not ranks.is_first
            with held(self.folder, ranks), watch_trials(quiet=quiet) as watch:
                done = run_trials(
                    trials,
                    self.folder,
                    ranks=ranks,
                    watch=watch,
                    notice=self.observer.note,
                    keep_going=keep_going,
                )
        if done.stopped is not None:
            if ranks.is_first:
                write_remarks([stopped_line(done.stopped)])
            raise typer.Exit(done.stopped.exit_code)
        if not ranks.is_first:
            raise typer.Exit(InputFileError.exit_code if done.failed else 0)
        return done


@contextmanager
def studying(
    run: RunSettings, out: Path | None, *, device: str | None, quiet: bool
) -> Iterator[Study]:
    """The processes of a study; without `out` its folder is removed at the end."""
    from bertsmith.api.observer import executing
    from bertsmith.cli.shared.training_process import training_process
    from bertsmith.cli.views.observer import ConsoleObserver

    printing = ConsoleObserver(quiet=quiet)
    with (
        training_process(run) as stop,
        executing(run, out, printing, device=device, stop=stop) as (execution, observer),
        _folder(out, execution.ranks) as folder,
    ):
        yield Study(folder=folder, execution=execution, observer=observer, quiet=quiet)


@contextmanager
def _folder(out: Path | None, ranks: Ranks) -> Iterator[Path]:
    """The given folder, or a temporary one of the first process for all of them."""
    from bertsmith.training.execution.rank_sync import gather_text

    if out is not None:
        yield out
    elif ranks.is_first:
        with TemporaryDirectory(prefix="bertsmith-") as own:
            yield Path(gather_text(ranks, own)[0])
    else:
        yield Path(gather_text(ranks, "")[0])


def figure_text(value: float | None) -> str:
    """A metric in a table."""
    return "-" if value is None or value != value else f"{value:.4f}"


def shown_figures(task: str, figures: Mapping[str, float | None], first: str) -> list[str]:
    """The names of the metrics shown in a table, the deciding one first."""
    from bertsmith.tasks.kinds import task_kind

    kind = task_kind(task)
    names = [name for name in kind.figures or (kind.metric.main,) if name in figures]
    return list(dict.fromkeys([first, *names])) if first in figures else names
