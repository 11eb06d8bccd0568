"""The observer of the command line: remarks on standard error, progress bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bertsmith.api.observer import Counter, Observer
from bertsmith.cli.shared.console import note, write_remarks
from bertsmith.cli.views.progress import meter
from bertsmith.labeled.spec import DataSpec
from bertsmith.training.loop.progress import Watcher

Watching = Callable[[], AbstractContextManager[Watcher | None]]


class ConsoleObserver(Observer):
    """Prints what it hears unless `quiet`; `watching` shows the progress of training."""

    def __init__(self, *, quiet: bool, watching: Watching = nullcontext) -> None:
        self._quiet = quiet
        self._watching = watching

    def note(self, message: str) -> None:
        """A remark on a line of its own."""
        note(message, quiet=self._quiet)

    def data(self, path: Path, spec: DataSpec) -> None:
        """How a file is read and why."""
        if path.name != "stdin":
            head = f"{path}, read as (every line has its option, such as --delimiter or --label):"
            self.lines([head, *(f"  {line}" for line in spec.describe())])

    def lines(self, lines: Sequence[str]) -> None:
        """Lines as they are."""
        if not self._quiet:
            write_remarks(lines)

    @contextmanager
    def training(self) -> Iterator[Watcher | None]:
        """A progress bar on a terminal, lines elsewhere."""
        with self._watching() as watch:
            yield watch

    @contextmanager
    def predicting(self, title: str, rows: int) -> Iterator[Counter]:
        """A progress bar on a terminal, lines elsewhere."""
        with meter(title, quiet=self._quiet) as shown:
            yield lambda done: shown(done, done / rows)

    @contextmanager
    def counting(self, title: str) -> Iterator[Counter]:
        """A count on a terminal, lines elsewhere."""
        with meter(title, quiet=self._quiet) as shown:
            yield lambda done: shown(done, None)
