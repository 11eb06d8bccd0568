"""Training commands: train as a request says, print what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertsmith.cli.shared.console import write_lines

if TYPE_CHECKING:
    from bertsmith.training.kind import TrainingKind, TrainingRequest


def train_and_print(
    kind: TrainingKind[Any, Any, Any], request: TrainingRequest, *, quiet: bool
) -> int:
    """Train, print what came out, and give the exit code."""
    from bertsmith.api.train import train
    from bertsmith.cli.shared.training_process import training_process
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.cli.views.progress import watch_training
    from bertsmith.cli.views.results import stopped_line, training_lines

    observer = ConsoleObserver(
        quiet=quiet, watching=lambda: watch_training(request.out, quiet=quiet)
    )
    with training_process(kind.recipe(request).run) as stop:
        done = train(kind, request, observer, stop=stop)
    if done.record is not None and done.report is not None:
        view = kind.result(done.record)
        write_lines(training_lines(done.folder, done.record, view, done.report))
    elif done.is_first:
        write_lines([stopped_line(done.outcome)])
    return done.outcome.exit_code
