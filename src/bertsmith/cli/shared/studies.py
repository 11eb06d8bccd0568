"""Commands of several runs: their options, how they are run, how plan and result are printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from bertsmith.cli.shared.console import table_lines, write_json, write_lines, write_remarks
from bertsmith.cli.shared.options import DevFile, DevRows, StudyFolder, TrainRows, TrialEpochs
from bertsmith.cli.shared.recipe_options import RecipeOptions
from bertsmith.errors import InputFileError

if TYPE_CHECKING:
    from bertsmith.api.observer import Observer
    from bertsmith.cli.shared.data_options import DataOptions
    from bertsmith.studies.study import Study, StudyPlan, StudyResult
    from bertsmith.training.execution.execution import Execution, RunSettings
    from bertsmith.training.execution.ranks import Ranks
    from bertsmith.training.kind import TrainingRequest
    from bertsmith.training.repeat.trials import Trials


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
class StudyProcess:
    """Where a study is stored, how its runs are executed, and who observes it.

    With several devices, every process of the command has one; the first one prints.
    """

    folder: Path
    execution: Execution
    observer: Observer
    quiet: bool

    def run(self, study: Study[Any], plan: StudyPlan) -> Trials:
        """Run what is not finished, with progress on standard error.

        A signal ends the command; so does the end of all runs in any process but the first.
        """
        from bertsmith.cli.views.progress import watch_trials
        from bertsmith.cli.views.results import stopped_line
        from bertsmith.studies.study import run_study

        ranks = self.execution.ranks
        with watch_trials(quiet=self.quiet or not ranks.is_first) as watch:
            done = run_study(study, plan, ranks=ranks, watch=watch, notice=self.observer.note)
        if done.stopped is not None:
            if ranks.is_first:
                write_remarks([stopped_line(done.stopped)])
            raise typer.Exit(done.stopped.exit_code)
        if not ranks.is_first:
            raise typer.Exit(InputFileError.exit_code if done.failed else 0)
        return done


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCommand:
    """How the command of a study runs and prints; without `out` its folder is removed at the end.

    With `estimate` the plan is printed and nothing is run.
    """

    run: RunSettings
    out: Path | None
    as_json: bool
    quiet: bool
    device: str | None = None
    estimate: bool = False

    def print(self, make: Callable[[StudyProcess], Study[Any]]) -> Trials:
        """Plan, run and write the study that `make` gives, and print its result."""
        from bertsmith.studies.study import write_study

        with self._studying() as process:
            study = make(process)
            plan = study.plan(process.execution)
            if self.estimate:
                self._print_plan(plan)
                raise typer.Exit
            process.observer.lines(plan.price)
            done = process.run(study, plan)
        result = study.result(done)
        files = write_study(study, result)
        if self.as_json:
            write_json(result.to_json())
        else:
            write_lines([*_lines(result), *_places(files)])
        return done

    def _print_plan(self, plan: StudyPlan) -> None:
        if self.as_json:
            write_json(plan.record)
            return
        table = [] if plan.table is None else table_lines(plan.table.heads, plan.table.rows)
        write_lines([*table, *plan.price])

    @contextmanager
    def _studying(self) -> Iterator[StudyProcess]:
        """The processes of a study."""
        from bertsmith.api.observer import executing
        from bertsmith.cli.shared.training_process import training_process
        from bertsmith.cli.views.observer import ConsoleObserver

        printing = ConsoleObserver(quiet=self.quiet)
        with (
            training_process(self.run) as stop,
            executing(self.run, self.out, printing, device=self.device, stop=stop) as running,
            _folder(self.out, running[0].ranks) as folder,
        ):
            execution, observer = running
            yield StudyProcess(
                folder=folder, execution=execution, observer=observer, quiet=self.quiet
            )


def _lines(result: StudyResult) -> list[str]:
    """The tables of a study with what is said before and after them."""
    tables = [table_lines(table.heads, table.rows) for table in result.tables]
    if len(tables) > 1:
        tables = [[*lines, ""] for lines in tables]
    return [*result.head, *(line for lines in tables for line in lines), *result.notes]


def _places(files: Sequence[Path]) -> list[str]:
    if not files:
        return []
    first, *others = files
    return [f"page, Markdown and JSON: {first}, {', '.join(path.name for path in others)}"]


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
