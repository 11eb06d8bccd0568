"""Progress of long work on standard error: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bertsmith.cli.shared.console import printable, rich_console, write_remarks
from bertsmith.wording import duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from bertsmith.training.loop.progress import Progress, Watcher
    from bertsmith.training.repeat.trials import StudyProgress

SECONDS_BETWEEN_LINES = 5.0
SECONDS_BETWEEN_READS = 0.5  # of the log

Meter = Callable[[int, float | None], None]


class Display:
    """One progress bar, or a line every few seconds where there is no terminal."""

    def __init__(self, bar: RichProgress | None) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None, where="", details="")
        self._shown = time.monotonic()

    def show(self, where: str, share: float | None, details: str) -> None:
        """The current place, the finished share of all work (None: unknown) and further figures."""
        if self._bar is not None and self._task is not None:
            total = None if share is None else 1.0
            self._bar.update(
                self._task,
                total=total,
                completed=share or 0.0,
                where=printable(where),
                details=printable(details),
            )
            return
        now = time.monotonic()
        if now - self._shown >= SECONDS_BETWEEN_LINES:
            self._shown = now
            percent = "" if share is None else f" ({share:.0%})"
            self.write([f"{where}{percent}: {details}"])

    def write(self, lines: list[str]) -> None:
        """Lines that stay, above the bar."""
        if self._bar is None:
            write_remarks(lines)
            return
        for line in lines:
            self._bar.console.print(line)


@contextmanager
def display(*, quiet: bool) -> Iterator[Display | None]:
    """A display on standard error; None when quiet."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield Display(bar)
    else:
        yield Display(None)


@contextmanager
def meter(title: str, *, quiet: bool) -> Iterator[Meter]:
    """Takes the number of finished texts and, where it is known, the finished share of all work."""
    start = time.monotonic()
    with display(quiet=quiet) as view:

        def update(done: int, share: float | None) -> None:
            if view is None:
                return
            elapsed = time.monotonic() - start
            parts = [f"{done:,} texts", f"{done / max(elapsed, 1e-9):,.0f} texts/s"]
            if share:
                parts.append(f"about {duration(elapsed * (1 - share) / share)} left")
            view.show(title, share, ", ".join(parts))

        yield update


@contextmanager
def stages(*, quiet: bool) -> Iterator[Callable[[str, int, float | None], None]]:
    """Takes the name of the current work, the number of finished texts and the finished share.

    Work whose share is unknown is announced where there is no terminal.
    """
    with display(quiet=quiet) as view:

        def update(work: str, done: int, share: float | None) -> None:
            if view is None:
                return
            if share is None and not sys.stderr.isatty():
                view.write([f"{work} ..."])
            else:
                view.show(work, share, f"{done:,} done" if done else "")

        yield update


@contextmanager
def watch_training(out: Path | None = None, *, quiet: bool) -> Iterator[Watcher | None]:
    """Steps, losses and speed; with `out`, also a line for each evaluation in the logs of a run."""
    with display(quiet=quiet) as view:
        if view is None:
            yield None
            return
        evaluations = None if out is None else Evaluations(out)
        last_read = 0.0

        def watch(look: Progress) -> None:
            nonlocal last_read
            now = time.monotonic()
            if evaluations is not None and now - last_read >= SECONDS_BETWEEN_READS:
                last_read = now
                view.write(evaluations.new_lines())
            view.show(_step(look), look.share, _figures(look))

        yield watch
        if evaluations is not None:
            view.write(evaluations.new_lines())


@contextmanager
def watch_trials(*, quiet: bool) -> Iterator[Callable[[StudyProgress], None] | None]:
    """The progress of several runs as one."""
    with display(quiet=quiet) as view:
        if view is None:
            yield None
            return

        def watch(look: StudyProgress) -> None:
            left = "" if look.left is None else f"about {duration(look.left)} left for all runs"
            view.show(f"{look.number}/{look.of} {look.name}, {_step(look.run)}", look.share, left)

        yield watch


class Evaluations:
    """The dev metrics as they appear in the logs of one or several runs."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._read: dict[Path, int] = {path: path.stat().st_size for path in self._logs()}

    def new_lines(self) -> list[str]:
        """A line for each evaluation since the last call."""
        lines = []
        for path in self._logs():
            with path.open("rb") as file:
                file.seek(0, 2)
                end, start = file.tell(), self._read.get(path, 0)
                if end < start:  # truncated by a resumed run
                    start = end
                file.seek(start)
                data = file.read(end - start)
            whole = data[: data.rfind(b"\n") + 1]
            self._read[path] = start + len(whole)
            lines += [line for raw in whole.splitlines() if (line := self._line(path, raw))]
        return lines

    def _logs(self) -> list[Path]:
        homes = ("log.jsonl", "seeds/*/log.jsonl", "folds/*/log.jsonl")
        return sorted(path for home in homes for path in self._out.glob(home))

    def _line(self, path: Path, raw: bytes) -> str | None:
        try:
            row = json.loads(raw)
        except ValueError:
            return None
        if row.get("kind") not in ("eval", "final"):
            return None
        home = path.parent
        run = "" if home == self._out else f"{home.parent.name} {home.name}, "
        values = ", ".join(
            f"{name} {value:.4f}"
            for name, value in (row.get("figures") or {}).items()
            if isinstance(value, float)
        )
        return f"{run}step {row['step']:,}: dev {values}"


def _step(look: Progress) -> str:
    """The current step of the total, or the phase before the first."""
    of = "" if look.steps is None else f" of {look.steps:,}"
    return look.phase or f"step {look.step:,}{of}"


def _figures(look: Progress) -> str:
    """Losses, tokens per second and the time left."""
    parts = [f"{name} {loss:.3f}" for name, loss in look.losses.items()]
    if look.tokens_per_second:
        parts.append(f"{look.tokens_per_second:,.0f} tokens/s")
    if look.left < float("inf"):
        parts.append(f"{duration(look.left)} left")
    return ", ".join(parts)


def _bar() -> RichProgress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.fields[where]}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[details]}", markup=False),
        console=rich_console(stderr=True),
        transient=True,
    )
