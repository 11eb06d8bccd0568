"""One model on every published data set of a folder; rows are read when their turn comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.errors import InputFileError, unknown
from bertsmith.evaluation.proof import baselines
from bertsmith.files.digest import file_marks, json_digest
from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits, split_files
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.studies.data_sets import SETS, SUITES, AvailableSets, DataSet, find_sets
from bertsmith.studies.study import (
    Findings,
    Study,
    StudyPlan,
    StudyTable,
    figure_text,
    weights_mark,
)
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.task import score
from bertsmith.training.execution.execution import Execution
from bertsmith.training.execution.rank_sync import first_then_others
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.labeled.rows import LabeledRows
from bertsmith.training.kinds.labeled.trials import finetuned
from bertsmith.training.loop.progress import Watcher
from bertsmith.training.loop.run import Outcome
from bertsmith.training.repeat.trials import (
    Trial,
    TrialResult,
    Trials,
    recipe_facts,
)
from bertsmith.wording import duration

BERT_BASE = "BERT base: as published, on the rows in brackets; 110 million parameters"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSetRun:
    """A data set on disk and how it is trained on; `rows`: at most so many of train and of dev.

    `mark` identifies the initial weights, since others may have the same name.
    """

    one: DataSet
    path: Path
    recipe: FinetuneRecipe
    model: str
    out: Path
    rows: int | None = None
    mark: str = ""


def glue_trial(run: DataSetRun, execution: Execution) -> Trial:
    """The run; its rows are read when it begins, so that one set is in memory at a time."""
    name = run.one.name

    def read() -> Splits:
        saved = run.out.with_suffix(".split.json")
        return load_splits(run.path, DataSpec(), saved=saved)

    def train(watch: Watcher | None) -> TrialResult | Outcome:
        splits = first_then_others(execution.ranks, read)
        job = _job(run, splits)
        done = finetuned(name, job, execution, watch)
        if isinstance(done, Outcome):
            return done
        return replace(done, more=_more(run, job, splits, execution), answers=())

    key = {
        **recipe_facts(run.recipe, run.recipe.run.seed),
        "files": _files(run.path),
        "model": run.model,
        "mark": run.mark,
        "rows": run.rows,
        "precision": execution.precision.name,
    }
    return Trial(name=name, key=json_digest(key), run=train, cost=_cost(run))


def _job(run: DataSetRun, splits: Splits) -> FinetuneJob:
    task = splits.specs["train"].task
    if task is None:
        raise InputFileError(f"{run.path}: the task of these rows is not clear")
    seed = run.recipe.run.seed
    return FinetuneJob(
        recipe=run.recipe,
        task=task,
        model=run.model,
        rows=LabeledRows(
            train=some_rows(splits.train, run.rows, seed=seed),
            dev=some_rows(splits.dev, run.rows, seed=seed),
            known=() if run.rows is None else task_kind(task).known(splits.train),
            spec=splits.specs["train"],
        ),
        out=run.out,
    )


def _more(
    run: DataSetRun, job: FinetuneJob, splits: Splits, execution: Execution
) -> dict[str, Any]:
    """Rows, the majority baseline, and figures of test rows if they are labeled."""
    test = [] if any(row.target is None for row in splits.test) else splits.test
    record: dict[str, Any] = {
        "task": job.task,
        "rows": {"train": len(job.rows.train), "dev": len(job.rows.dev), "test": len(test)},
        "majority": baselines(job.task, job.rows.train, job.rows.dev)["majority"],
        "published": dict(run.one.published),
        "published_rows": run.one.rows,
        "notes": list(splits.notes),
    }
    if test:
        record["test"] = _evaluated(job, test, execution)
    return record


def _evaluated(job: FinetuneJob, rows: Sequence[Example], execution: Execution) -> dict[str, float]:
    """Figures of labeled rows by the folder as it lies on disk."""
    predictor = load_predictor(job.folder, device=str(execution.device))
    return score(predictor.task, rows, [one for _, one in predictor.stream(rows)])


def _files(path: Path) -> list[str]:
    """Names, sizes and times of the files of a data set."""
    return file_marks(split_files(path)[0].values() if path.is_dir() else [path])


def _cost(run: DataSetRun) -> float:
    """About how much there is to read: bytes, of so many rows of the usual length at most."""
    path = split_files(run.path)[0].get("train", run.path) if run.path.is_dir() else run.path
    size = path.stat().st_size
    usual = run.recipe.length.max_length * 3  # bytes of a row
    return run.recipe.plan.epochs * (size if run.rows is None else min(size, run.rows * usual))


@dataclass(frozen=True, kw_only=True)
class GlueStudy(Study[Findings]):
    """A model on every available data set; one that cannot be read does not end the others."""

    model: str
    data: Path
    folder: Path
    sets: AvailableSets
    runs: tuple[DataSetRun, ...]
    name: str = "glue"
    keep_going: bool = True

    def plan(self, execution: Execution) -> StudyPlan:
        """A run per data set."""
        return StudyPlan(trials=[glue_trial(run, execution) for run in self.runs])

    def result(self, done: Trials) -> Findings:
        """A line for each figure of each data set, and why others are not there."""
        ran = {*done.failed, *(one.name for one in done.rows)}
        not_run = [name for name in self.sets.usable if name not in ran]
        absent = {suite: self.sets.absent(suite) for suite in SUITES}
        heads = ["set", "train rows", "dev rows", "metric", "dev", "test", "majority class"]
        rows = [_cells(one, figure) for one in done.rows for figure in SETS[one.name].figures]
        notes = [f"failed: {name}: {first_line(why)}" for name, why in done.failed.items()]
        notes += [f"missing from {s}: {', '.join(names)}" for s, names in absent.items() if names]
        notes += [f"not usable for training: {n}: {why}" for n, why in self.sets.unusable.items()]
        if not_run:
            named = ", ".join(not_run)
            notes.append(f"available, but not run (name them with --data-set): {named}")
        return Findings(
            record={
                "model": self.model,
                "data": str(self.data),
                "sets": [{"suite": SETS[one.name].suite, **one.to_json()} for one in done.rows],
                "failed": dict(done.failed),
                "absent": absent,
                "unusable": dict(self.sets.unusable),
                "not_run": not_run,
            },
            tables=[StudyTable(heads=[*heads, "BERT base", "time"], rows=rows)] if rows else [],
            notes=[BERT_BASE, *notes] if rows else notes,
        )


def read_glue(
    model: str,
    data: Path,
    out: Path,
    recipe: Callable[[str], FinetuneRecipe],
    *,
    only: Sequence[str] = (),
    rows: int | None = None,
) -> GlueStudy:
    """The data sets of a folder: those of GLUE and CLUE, or those that `only` names.

    `recipe` gives the recipe of a data set by its name.
    """
    mark, sets = weights_mark(model), find_sets(data)
    runs = [
        DataSetRun(
            one=SETS[name],
            path=sets.usable[name],
            recipe=recipe(name),
            model=model,
            out=out / name,
            rows=rows,
            mark=mark,
        )
        for name in _wanted(sets, only, data)
    ]
    return GlueStudy(model=model, data=data, folder=out, sets=sets, runs=tuple(runs))


def _wanted(sets: AvailableSets, only: Sequence[str], data: Path) -> list[str]:
    """The data sets to run: those of GLUE and CLUE that are available, or those named."""
    for name in only:
        if name not in SETS:
            raise unknown("data set", name, SETS)
        if name not in sets.usable:
            why = sets.unusable.get(name, f"{data} holds no folder or file of that name")
            raise InputFileError(f"{name}: {why}")
    names = list(only) or [name for name in sets.usable if SETS[name].suite in SUITES]
    if not names:
        known = ", ".join(name for name, one in SETS.items() if one.suite in SUITES)
        raise InputFileError(
            f"{data} holds no data set of GLUE or CLUE; folders are known by these names: {known}"
        )
    return list(dict.fromkeys(names))


def _cells(run: TrialResult, figure: str) -> list[str]:
    """A line of the table; what concerns the whole set stands in the line of its first figure."""
    counts, published = run.more["rows"], run.more["published"].get(figure)
    first = figure == SETS[run.name].figures[0]
    whole = [run.name, f"{counts['train']:,}", f"{counts['dev']:,}", duration(run.seconds)]
    if not first:
        whole = [""] * len(whole)
    return [
        *whole[:3],
        figure,
        figure_text(run.figures.get(figure)),
        figure_text((run.more.get("test") or {}).get(figure)),
        figure_text(run.more["majority"].get(figure)),
        f"{published:.3f} ({run.more['published_rows']})" if published else "-",
        whole[3],
    ]


def first_line(message: str) -> str:
    """What fits a table of an error."""
    return message.partition("\n")[0]
