"""What `bertsmith pretrain` shows while it trains and when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bertsmith.cli.shared.console import SECONDS_BETWEEN_LINES, duration

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from bertsmith.training.loop.evaluate import Evaluation
    from bertsmith.training.loop.progress import Progress, Watcher


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watcher | None]:
    """A bar on a terminal, a line every few seconds elsewhere, nothing when quiet."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with progress_bar() as bar:
            yield _Bar(bar)
    else:
        yield _Lines()


def figures(look: Progress) -> str:
    """Losses, tokens per second and the time left, on one line."""
    parts = [f"{name} {loss:.3f}" for name, loss in look.losses.items()]
    if look.tokens_per_second:
        parts.append(f"{look.tokens_per_second:,.0f} tokens/s")
    if look.left < float("inf"):
        parts.append(f"{duration(look.left)} left")
    return ", ".join(parts)


def whereabouts(look: Progress) -> str:
    """The current step of the total, or the phase before the first."""
    of = "" if look.steps is None else f" of {look.steps:,}"
    return look.phase or f"step {look.step:,}{of}"


def held_out_lines(evaluation: Evaluation) -> list[str]:
    """Held-out metrics as lines of text."""
    lines = []
    for name, loss in evaluation.losses.items():
        parts = [f"loss {loss:.4f}"]
        if name in ("mlm", "sbo"):
            parts.append(f"perplexity {evaluation.perplexity[name]:,.1f}")
        if name in evaluation.accuracy:
            parts.append(f"accuracy {evaluation.accuracy[name]:.4f}")
        parts.append(f"{evaluation.counts[name]:,} predictions")
        lines.append(f"  {name:<13}{', '.join(parts)}")
    return lines


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task = bar.add_task("pretrain", total=1.0, figures="", step="")

    def __call__(self, look: Progress) -> None:
        self._bar.update(
            self._task, completed=look.share, step=whereabouts(look), figures=figures(look)
        )


class _Lines:
    def __init__(self) -> None:
        self._shown = 0.0

    def __call__(self, look: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < SECONDS_BETWEEN_LINES:
            return
        self._shown = now
        sys.stderr.write(f"{whereabouts(look)} ({look.share:.0%}): {figures(look)}\n")
        sys.stderr.flush()


def progress_bar() -> RichProgress:
    """A bar with step and figures, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.fields[step]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[figures]}"),
        console=Console(stderr=True),
        transient=True,
    )
