"""Observer: what a caller of the API hears while a long job runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bertsmith.labeled.spec import DataSpec
from bertsmith.training.loop.progress import Watcher

log = logging.getLogger(__name__)

Counter = Callable[[int], None]


class Observer:
    """Logs what it hears; the command line overrides these methods to print."""

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
