"""Studies in Python: ablation and road as one call each; the small runs of lengths and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from bertsmith.api.observer import Observer, executing
from bertsmith.config import overrides_of
from bertsmith.errors import ConfigError, check_type
from bertsmith.evaluation.length_table import LengthTable, length_table
from bertsmith.files.paths import GivenPath, GivenPaths, path_of, paths_of
from bertsmith.folders.read import load_tokenizer
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reader import read_examples
from bertsmith.labeled.split.splits import Splits, split_files
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.studies.ablation.study import AblationRequest, read_ablation
from bertsmith.studies.ablation.table import AblationTable
from bertsmith.studies.road.request import RoadRequest
from bertsmith.studies.road.study import RUN, read_road
from bertsmith.studies.road.table import RoadTable
from bertsmith.studies.study import Result, Study, run_study, write_study
from bertsmith.tasks.kinds import task_kind
from bertsmith.training.execution.execution import Execution, RunSettings
from bertsmith.training.kind import Reading, TrainingRequest
from bertsmith.training.kinds.labeled.kind import job_on, labeled_recipe, read_splits
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.loop.schedule import seconds

RUNS = "runs"  # the folder of unfinished runs


def ablate(
    recipe: str,
    corpus: str | Path,
    out: str | Path,
    *,
    vary: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    seeds: int = 3,
    probes: Sequence[str | Path] = (),
    probing: Literal["frozen", "tuned", "both"] = "tuned",
) -> AblationTable:
    """Pre-train a recipe and its variations with the same seeds, probe them, compare them.

    The same call again resumes. `vary` are settings such as "mask.rate=0.3"; `probes` are files of
    labeled rows. The table is also in `out`, as a page, Markdown and JSON.
    """
    check_type("recipe", recipe, str)
    check_type("corpus", corpus, str, Path)
    check_type("out", out, str, Path)
    request = AblationRequest(
        recipe=recipe,
        corpus=Path(corpus),
        out=Path(out),
        vary=vary,
        settings=overrides_of(settings),
        seeds=seeds,
        probes=[Path(probe) for probe in probes],
        probing=probing,
    )
    study = read_ablation(request, notice=Observer().note)
    return finished_study(study, study.ablation.base.run)


def road(
    files: GivenPaths,
    out: GivenPath,
    *,
    budget: str | float | None = None,
    steps: int | None = None,
    labels: GivenPath | None = None,
    similarity: GivenPaths = (),
    analogies: GivenPaths = (),
) -> RoadTable:
    """Train models from n-gram to BERT on the same documents, test them, compare them.

    `budget` ("30m") is for everything, `steps` are of each neural model; the same call resumes. The
    table is also in `out`, as a page, Markdown and JSON.
    """
    try:
        time_given = None if budget is None else float(seconds(budget))
    except ValueError as fault:
        raise ConfigError(f"budget: {fault}") from fault
    request = RoadRequest(
        files=paths_of("files", files),
        out=path_of("out", out),
        budget=time_given,
        steps=steps,
        labels=None if labels is None else path_of("labels", labels),
        similarity=paths_of("similarity", similarity),
        analogies=paths_of("analogies", analogies),
    )
    return finished_study(read_road(request, notice=Observer().note), RUN)


def finished_study(study: Study[Result], run: RunSettings) -> Result:
    """Every run of a study that is not finished, then its result, written into its folder."""
    with executing(run, study.folder, None) as (execution, observer):
        plan = study.plan(execution)
        observer.lines(plan.price)
        done = run_study(study, plan, ranks=execution.ranks, notice=observer.note)
    if done.stopped is not None:
        raise ConfigError(f"{study.folder} was stopped; the same call resumes")
    result = study.result(done)
    write_study(study, result)
    return result


def small_job(
    request: TrainingRequest, rows: tuple[int, int], execution: Execution, observer: Observer
) -> tuple[FinetuneJob, Splits]:
    """A fine-tuning on so many training and dev rows, stratified by label; and all rows."""
    recipe = labeled_recipe(request)  # mistakes show before the data is read
    splits = read_splits(
        Reading(request=request, recipe=recipe, execution=execution, audience=observer)
    )
    job = job_on(request, splits)
    seed = job.recipe.run.seed
    small = replace(
        job,
        rows=replace(
            job.rows,
            train=some_rows(splits.train, rows[0], seed=seed),
            dev=some_rows(splits.dev, rows[1], seed=seed),
            known=task_kind(job.task).known(splits.train),
            language=splits.specs["train"].stated("language"),
        ),
        out=request.out / RUNS,
    )
    return small, splits


def measure_lengths(request: TrainingRequest) -> tuple[LengthTable, int]:
    """The lengths of all rows, labeled or not, and the maximum length of the recipe."""
    files = split_files(request.data)[0] if request.data.is_dir() else {}
    task = request.spec.task
    rows = {}
    for name, path in (files or {request.data.name: request.data}).items():
        spec = guess_spec(path, given=request.spec)
        rows[name] = list(read_examples(path, spec, on_error=request.on_error))
        task = task or spec.task
    length = labeled_recipe(request, task).length
    table = length_table(rows, load_tokenizer(request.model), windows=length.stride is not None)
    return table, length.max_length
