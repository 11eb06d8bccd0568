"""A run of fine-tuning on a published data set, whose rows are read when its turn comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertsmith.errors import InputFileError
from bertsmith.evaluation.proof import baselines
from bertsmith.files.digest import file_marks, json_digest
from bertsmith.labeled.example import Example
from bertsmith.labeled.spec import DataSpec
from bertsmith.labeled.split.splits import Splits, load_splits, split_files
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.runtime.load_predictor import load_predictor
from bertsmith.studies.data_sets import DataSet
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
from bertsmith.training.repeat.trials import Trial, TrialResult, recipe_facts


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
