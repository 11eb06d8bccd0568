"""Progress and result tables of commands that make several small runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bertsmith.cli.shared.console import SECONDS_BETWEEN_LINES, duration
from bertsmith.cli.views.pretrain import progress_bar, whereabouts

if TYPE_CHECKING:
    from bertsmith.training.studies.trials import Look


@contextmanager
def watching(*, quiet: bool) -> Iterator[Callable[[Look], None] | None]:
    """A bar over all runs on a terminal, a line every few seconds elsewhere, nothing if quiet."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with progress_bar() as bar:
            task = bar.add_task("runs", total=1.0, figures="", step="")

            def show(look: Look) -> None:
                bar.update(task, completed=look.share, step=_where(look), figures=_left(look))

            yield show
    else:
        shown = 0.0

        def tell(look: Look) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown >= SECONDS_BETWEEN_LINES:
                shown = now
                sys.stderr.write(f"{_where(look)}: {look.share:.0%} in total{_left(look)}\n")
                sys.stderr.flush()

        yield tell


def _where(look: Look) -> str:
    return f"{look.number}/{look.of} {look.name}, {whereabouts(look.run)}"


def _left(look: Look) -> str:
    return "" if look.left is None else f", about {duration(look.left)} left"


def figure_text(value: float | None) -> str:
    """A figure in a table."""
    return "-" if value is None or value != value else f"{value:.4f}"


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: the first to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = []
    for cells in (heads, *rows):
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        lines.append("  ".join([cells[0].ljust(widths[0]), *rest]).rstrip())
    return lines


def shown_figures(task: str, figures: Mapping[str, float | None], first: str | None) -> list[str]:
    """The names of the metrics shown in a table, the deciding one first."""
    from bertsmith.tasks.kinds import task_kind

    kind = task_kind(task)
    names = [name for name in kind.figures or (kind.metric.main,) if name in figures]
    return names if first is None or first not in figures else list(dict.fromkeys([first, *names]))
