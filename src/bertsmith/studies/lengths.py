"""Which part of long texts to read: the same run with each, and a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.evaluation.comparison import Comparison, compare
from bertsmith.evaluation.length_table import LengthTable
from bertsmith.labeled.example import Example
from bertsmith.metrics import better
from bertsmith.studies.study import (
    Findings,
    Study,
    StudyPlan,
    StudyTable,
    figure_text,
    shown_figures,
)
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.length import LengthSettings
from bertsmith.tasks.task import Task
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kinds.labeled.learner import FinetuneJob, job_task
from bertsmith.training.kinds.labeled.trials import finetune_trial
from bertsmith.training.repeat.trials import Trial, TrialResult, Trials
from bertsmith.wording import counted, duration

MUCH_LONGER = 2  # times the max length: then windows over all of it are worth a try
OFTEN = 95  # percentile of the row lengths that decides whether rows are much longer
STEP = 0.75  # from window to window, of their length
SPECIALS = 4  # the most tokens of a window that are no text
TOO_LONG = 6  # times as long as a cut
KEEPS = ("head", "tail", "head+tail")


def window_cost(table: LengthTable, limit: int) -> float:
    """How many times as long as a cut of the rows it takes to read all of them in windows."""
    return 1 / (STEP * (1 - table.lost(limit)))


def length_choices(
    given: LengthSettings,
    table: LengthTable,
    *,
    task: str,
    fields: int,
    windows: bool | None = None,
) -> dict[str, LengthSettings]:
    """Head, tail and head+tail at the given length; {} if no row is longer.

    `windows` over all of a text are tried, too; None: if many rows are far longer, and it does not
    take too long.
    """
    reads = task_kind(task).windows
    if reads == "always":
        raise ConfigError(f"{task} reads long texts in windows: nothing is cut, nothing to compare")
    limit = given.max_length
    if table.cut(limit) == 0:
        return {}
    plain = changed(given, {"stride": None, "pool": "mean", "head": None, "keep": "head"})
    choices = {keep: changed(plain, {"keep": keep}) for keep in KEEPS}
    if given.head is not None:
        choices["head+tail"] = changed(choices["head+tail"], {"head": given.head})
    possible = reads == "optional" and fields <= 2
    if windows and not possible:
        raise ConfigError("windows move over one text or the second of a pair; leave --windows out")
    if windows is None:
        long = table.percentile(OFTEN) >= MUCH_LONGER * limit
        windows = possible and long and window_cost(table, limit) <= TOO_LONG
    if windows:
        stride = given.stride or max(1, min(int(STEP * limit), limit - SPECIALS))
        choices["windows"] = changed(plain, {"stride": stride, "budgets": None, "pool": given.pool})
    return choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The best choice, and whether the rows tell it from the others.

    `against` has, by name, the comparison of each other choice (first) with the best (second).
    """

    figure: str
    best: str
    against: Mapping[str, Comparison]

    @property
    def wins(self) -> bool:
        """Whether the best is better than every other by more than noise."""
        return all(one.winner == 1 for one in self.against.values())

    def words(self) -> list[str]:
        """In plain sentences."""
        apart = [name for name, one in self.against.items() if one.winner == 1]
        alike = [name for name in self.against if name not in apart]
        rows = next((one.rows for one in self.against.values()), 0)
        if self.wins:
            lines = [f"{self.best} wins: better than {_listed(apart)} by more than noise"]
        elif not apart:
            lines = [
                f"{self.best} has the best {self.figure}, but {rows:,} rows do not tell it from "
                f"{_listed(alike)}: the difference is within noise"
            ]
        else:
            lines = [
                f"{self.best} is better than {_listed(apart)} by more than noise; "
                f"{rows:,} rows do not tell it from {_listed(alike)}"
            ]
        return [
            *lines,
            "noise: paired bootstrap over the development rows, p below .05 counts as more; one "
            "seed, so small differences may turn with another",
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "figure": self.figure,
            "best": self.best,
            "wins": self.wins,
            "against": {name: one.to_json() for name, one in self.against.items()},
        }


def verdict(
    task: Task, dev: Sequence[Example], results: Sequence[TrialResult], *, figure: str | None = None
) -> Verdict:
    """The best of several runs by their answers to the same rows."""
    name = figure or task.kind.metric.main
    best = results[0]
    for one in results[1:]:
        if better(name, _value(one, name), _value(best, name)):
            best = one
    against = {
        one.name: compare(task, dev, one.answers, best.answers, figure=name)
        for one in results
        if one.name != best.name
    }
    return Verdict(figure=name, best=best.name, against=against)


def _value(result: TrialResult, figure: str) -> float:
    value = result.figures.get(figure)
    return float("nan") if value is None else value


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True, kw_only=True)
class LengthStudy(Study[Findings]):
    """A run for each way of truncation, in `job.folder`; none if no row is too long.

    `mark` identifies the initial weights, since others may have the same name.
    """

    data: Path
    folder: Path
    job: FinetuneJob
    table: LengthTable
    windows: bool | None = None
    mark: str = ""
    name: str = "lengths"

    def plan(self, execution: Execution) -> StudyPlan:
        """The runs; windows take longer."""
        job, length = self.job, self.job.recipe.length
        fields = len(job.rows.train[0].texts)
        choices = length_choices(
            length, self.table, task=job.task, fields=fields, windows=self.windows
        )
        costs = {"windows": window_cost(self.table, length.max_length)} if choices else {}
        trials: list[Trial] = []
        for name, choice in choices.items():
            recipe = changed(job.recipe, {"length": choice})
            own = replace(job, recipe=recipe, out=job.folder / name)
            cost = costs.get(name, 1.0)
            trials.append(finetune_trial(name, own, execution, mark=self.mark, cost=cost))
        return StudyPlan(trials=trials)

    def result(self, done: Trials) -> Findings:
        """The lengths, every run compared with the best, and which that is in sentences."""
        recipe, rows = self.job.recipe, self.job.rows
        limit = recipe.length.max_length
        record = {"data": str(self.data), "lengths": self.table.to_json(limit), "compare": None}
        lines = self.table.lines(limit)
        if not done.rows:
            nothing = f"no row is longer than {limit} tokens: nothing to compare"
            return Findings(record=record, head=[*lines, nothing])
        best = verdict(job_task(self.job), rows.dev, done.rows, figure=recipe.best.figure)
        record["compare"] = {
            "max_length": limit,
            "rows": {"train": len(rows.train), "dev": len(rows.dev)},
            "epochs": recipe.plan.epochs,
            "seed": recipe.run.seed,
            "runs": [one.to_json() for one in done.rows],
            **best.to_json(),
        }
        head = (
            f"max length {limit}, {counted(len(rows.train), 'training row')}, "
            f"{counted(recipe.plan.epochs, 'epoch')}; metrics of "
            f"{counted(len(rows.dev), 'dev row')}:"
        )
        return Findings(
            record=record,
            head=[*lines, "", head],
            tables=[_compared(self.job.task, done.rows, best)],
            notes=best.words(),
        )


def _compared(task: str, runs: Sequence[TrialResult], best: Verdict) -> StudyTable:
    """A row per run: its metrics, and its difference to the best."""
    names = shown_figures(task, runs[0].figures, best.figure)
    rows = []
    for one in runs:
        cells = [one.name, *(figure_text(one.figures.get(name)) for name in names)]
        cells.append(duration(one.seconds))
        if one.name == best.best:
            cells += ["best", "", "", ""]
        else:
            against = best.against[one.name]
            gap = against.difference
            cells += [f"{gap.value:+.4f}", f"{gap.low:+.4f} to {gap.high:+.4f}", f"{gap.p:.3f}"]
            cells.append("yes" if against.winner == 1 else "no")
        rows.append(cells)
    heads = ["", *names, "time", "difference to the best", "95 % interval", "p", "significant"]
    return StudyTable(heads=heads, rows=rows)
