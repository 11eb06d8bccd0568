"""What `bertsmith finetune` shows while it trains and when it is done."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertsmith.cli.shared.console import SECONDS_BETWEEN_LINES, duration
from bertsmith.cli.views.evaluate import shown
from bertsmith.cli.views.pretrain import figures, progress_bar, whereabouts
from bertsmith.report.finetune.overfitting import overfitting
from bertsmith.report.finetune.summary import BEATEN, is_beaten

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from bertsmith.training.loop.progress import Progress, Watcher
    from bertsmith.training.loop.run import Outcome

LOOK_FOR_FIGURES = 0.5  # seconds between two reads of the log
NAMES = {"majority": "majority class", "words": "bag of words"}


@contextmanager
def watching(out: Path, *, quiet: bool) -> Iterator[Watcher | None]:
    """A bar on a terminal, lines elsewhere, and a line for every evaluation on the dev rows."""
    if quiet:
        yield None
        return
    if sys.stderr.isatty():
        with progress_bar() as bar:
            view: _Bar | _Lines = _Bar(bar)
            evaluations = Evaluations(out)
            yield _watcher(view, evaluations)
            view.say(evaluations.new_lines())
    else:
        view = _Lines()
        evaluations = Evaluations(out)
        yield _watcher(view, evaluations)
        view.say(evaluations.new_lines())


def _watcher(view: _Bar | _Lines, evaluations: Evaluations) -> Watcher:
    looked = 0.0

    def watch(look: Progress) -> None:
        nonlocal looked
        now = time.monotonic()
        if now - looked >= LOOK_FOR_FIGURES:
            looked = now
            view.say(evaluations.new_lines())
        view.show(look)

    return watch


class Evaluations:
    """The dev metrics as they appear in the logs of one or several runs."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._read: dict[Path, int] = {path: path.stat().st_size for path in self._logs()}

    def new_lines(self) -> list[str]:
        """A line for each evaluation since the last look."""
        found = []
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
            found += [line for raw in whole.splitlines() if (line := self._line(path, raw))]
        return found

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
        whose = "" if home == self._out else f"{home.parent.name} {home.name}, "
        values = ", ".join(
            f"{name} {value:.4f}"
            for name, value in (row.get("figures") or {}).items()
            if isinstance(value, float)
        )
        return f"{whose}step {row['step']:,}: dev {values}"


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task = bar.add_task("finetune", total=1.0, figures="", step="")

    def show(self, look: Progress) -> None:
        self._bar.update(
            self._task, completed=look.share, step=whereabouts(look), figures=figures(look)
        )

    def say(self, lines: list[str]) -> None:
        for line in lines:
            self._bar.console.print(line, highlight=False, markup=False)


class _Lines:
    def __init__(self) -> None:
        self._shown = 0.0

    def show(self, look: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < SECONDS_BETWEEN_LINES:
            return
        self._shown = now
        self.say([f"{whereabouts(look)} ({look.share:.0%}): {figures(look)}"])

    def say(self, lines: list[str]) -> None:
        sys.stderr.writelines(f"{line}\n" for line in lines)
        sys.stderr.flush()


def stopped_line(outcome: Outcome) -> str:
    """How a run that was stopped ended."""
    return (
        f"stopped by {outcome.signal} after {outcome.step:,} steps, {duration(outcome.seconds)}; "
        "saved, the same command resumes"
    )


def result_lines(out: Path, record: dict[str, Any], page: Path) -> list[str]:
    """The result: metrics next to the baselines, truncation, where the report is."""
    lines = [_made(out, record["training"])]
    for name in ("dev", "test"):
        if record.get(name):
            lines += _side(name, record[name], (record.get("baselines") or {}).get(name) or {})
    lines += _several(record)
    if is_beaten(record):
        lines.append(BEATEN)
    warning = overfitting(record)
    if warning:
        lines.append(warning)
    lines.append(f"report: {page}")
    return lines


def _made(out: Path, training: Mapping[str, Any]) -> str:
    epochs = training["epochs"]
    parts = ["1 epoch" if epochs == 1 else f"{epochs:g} epochs"]
    if training.get("steps"):
        parts.append(f"{training['steps']:,} steps")
    if training.get("rate"):
        parts.append(f"learning rate {training['rate']:g}")
    if training.get("seconds"):
        parts.append(duration(training["seconds"]))
    if training.get("tokens_per_second"):
        parts.append(f"{training['tokens_per_second']:,.0f} tokens/s")
    if training.get("best_weights") == "average":
        parts.append("best: averaged weights")
    elif training.get("best_step"):
        parts.append(f"best after step {training['best_step']:,}")
    return f"{out}: {', '.join(parts)}"


def _side(name: str, proof: Mapping[str, Any], simple: Mapping[str, Any]) -> list[str]:
    """A table: a row a figure, a column for the model and each baseline."""
    task = proof["task"]
    figures = proof["figures"]
    width = max(map(len, figures)) + 2
    heads = ["model", *(NAMES.get(key, key) for key in simple)]
    lines = [f"{name}, {proof['rows']:,} rows:"]
    lines.append(f"  {'':<{width}}" + "".join(f"{head:>18}" for head in heads))
    for figure, value in figures.items():
        cells = [shown(value, task=task)]
        cells += [
            shown(table[figure], task=task) if table.get(figure) is not None else "-"
            for table in simple.values()
        ]
        lines.append(f"  {figure:<{width}}" + "".join(f"{cell:>18}" for cell in cells))
    interval = proof.get("interval") or {}
    if interval.get("low") is not None:
        low, high = (shown(interval[side], task=task) for side in ("low", "high"))
        lines.append(f"  95 % interval over rows: {proof['main']} {low} to {high}")
    cost = proof.get("truncation") or {}
    if cost.get("rows_cut"):
        lines.append(
            f"  truncated: {cost['rows_cut']:,} of {proof['rows']:,} rows, "
            f"{cost['tokens_cut']:,} tokens lost"
        )
    return lines


def _several(record: Mapping[str, Any]) -> list[str]:
    """Mean and interval of several seeds; the figures of all rows held out in folds."""
    folds, seeds = record.get("folds"), record.get("seeds")
    task = record["task"]
    lines: list[str] = []
    if isinstance(folds, Mapping):
        rows = record["data"]["rows"]["train"]
        lines.append(f"{rows:,} rows in {folds['count']} folds, each evaluated when held out:")
        lines += [
            f"  {name}: {shown(value, task=task)}" for name, value in folds["figures"].items()
        ]
    if seeds:
        lines.append(f"dev over {len(seeds)} seeds; {record.get('chosen')} was chosen:")
        lines += [
            f"  {name}: mean {shown(one['mean'], task=task)}, standard deviation "
            f"{shown(one['deviation'], task=task)}, 95 % interval "
            f"{shown(one['low'], task=task)} to {shown(one['high'], task=task)}"
            for name, one in (record.get("interval") or {}).items()
        ]
    return lines
