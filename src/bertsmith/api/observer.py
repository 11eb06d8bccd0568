"""What long jobs of the API share: an observer of their progress, and how they are executed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from bertsmith.errors import ConfigError
from bertsmith.labeled.spec import DataSpec
from bertsmith.training.execution.execution import (
    Execution,
    RunSettings,
    choose_execution,
    is_one_of_many,
)
from bertsmith.training.execution.stop import StopRequest
from bertsmith.training.loop.progress import Watcher

log = logging.getLogger(__name__)

Counter = Callable[[int], None]


class Observer:
    """Logs every event; the command line overrides these methods to print."""

    def note(self, message: str) -> None:
        """A remark for people."""
        log.info("%s", message)

    def data(self, path: Path, spec: DataSpec) -> None:
        """How a file is read."""
        log.info("%s, read as: %s", path, "; ".join(spec.describe()))

    def lines(self, lines: Sequence[str]) -> None:
        """Findings about the rows."""
        for line in lines:
            log.info("%s", line)

    @contextmanager
    def training(self) -> Iterator[Watcher | None]:
        """Entered while a model is trained; gives what is called with the progress."""
        yield None

    @contextmanager
    def predicting(self, title: str, rows: int) -> Iterator[Counter]:
        """Entered while a model predicts; gives what is called with the number of rows done."""
        yield lambda done: None

    @contextmanager
    def counting(self, title: str) -> Iterator[Counter]:
        """Entered while work of unknown length is done; gives what is called with the count."""
        yield lambda done: None


@contextmanager
def executing(
    run: RunSettings,
    out: Path | None,
    observer: Observer | None,
    *,
    device: str | None = None,
    stop: StopRequest | None = None,
) -> Iterator[tuple[Execution, Observer]]:
    """The execution of a run and its observer: the given one in the first process."""
    if run.devices > 1 and not is_one_of_many():
        raise ConfigError(
            f"run.devices={run.devices}: one process has one device; start the program with "
            "torchrun, or use the command line, which starts the others"
        )
    if run.threads is not None:
        torch.set_num_threads(run.threads)
    execution = choose_execution(run, out, device=device, stop=stop)
    try:
        chosen = observer if observer is not None and execution.ranks.is_first else Observer()
        chosen.note(f"precision: {execution.precision.name} ({execution.precision.reason})")
        yield execution, chosen
    finally:
        execution.close()
