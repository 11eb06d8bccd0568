"""Studies: several small fine-tunings on the same rows, and which of them is best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from bertsmith.api.observer import Observer
from bertsmith.config import changed
from bertsmith.errors import ConfigError
from bertsmith.evaluation.length_table import LengthTable, length_table
from bertsmith.files.digest import file_marks
from bertsmith.folders.read import load_tokenizer, read_folder
from bertsmith.labeled.guess.guess_spec import guess_spec
from bertsmith.labeled.read.reader import read_examples
from bertsmith.labeled.split.splits import Splits, split_files
from bertsmith.labeled.split.stratify import some_rows
from bertsmith.metrics import LOWER_IS_BETTER
from bertsmith.studies.lengths import length_choices, window_cost
from bertsmith.studies.vectors import frozen_recipe, vector_trials
from bertsmith.tasks.kinds import task_kind
from bertsmith.tasks.model.text_vector import VectorSettings, vector_choices
from bertsmith.training.execution.execution import Execution
from bertsmith.training.kind import Reading, TrainingRequest
from bertsmith.training.kinds.labeled.kind import job_on, labeled_recipe, read_splits
from bertsmith.training.kinds.labeled.learner import FinetuneJob
from bertsmith.training.kinds.labeled.trials import finetune_trial
from bertsmith.training.repeat.trials import Trial, TrialResult

RUNS = "runs"  # the folder of unfinished runs


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorStudy:
    """Which text vectors are compared; nothing given: all of them, frozen and trained."""

    only: Literal["frozen", "trained"] | None = None
    pooling: Sequence[str] = ()
    layers: Sequence[str] = ()
    frozen_epochs: float = 10.0
    frozen_lr: float | None = None  # None: by the norm of the vectors


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


def weights_mark(model: str) -> str:
    """A fingerprint of a model folder's weights by file size and time."""
    home = read_folder(model).path
    files = sorted(path for path in home.rglob("*.safetensors") if path.is_file())
    return " ".join(file_marks(files))


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


def length_trials(
    job: FinetuneJob,
    table: LengthTable,
    execution: Execution,
    *,
    windows: bool | None = None,
    mark: str = "",
) -> list[Trial]:
    """A run for each way of truncation; none if no row is longer than the maximum length."""
    length = job.recipe.length
    fields = len(job.rows.train[0].texts)
    choices = length_choices(length, table, task=job.task, fields=fields, windows=windows)
    costs = {"windows": window_cost(table, length.max_length)} if choices else {}
    trials = []
    for name, choice in choices.items():
        recipe = changed(job.recipe, {"length": choice})
        own = replace(job, recipe=recipe, out=job.folder / name)
        cost = costs.get(name, 1.0)
        trials.append(finetune_trial(name, own, execution, mark=mark, cost=cost))
    return trials


def trials_of_vectors(
    job: FinetuneJob, study: VectorStudy, execution: Execution, *, mark: str = ""
) -> list[Trial]:
    """A run for each pooling of each choice of layers, with a frozen and with a trained encoder."""
    if task_kind(job.task).reads == "rows":
        raise ConfigError(f"{job.task} reads single tokens: there is no text vector to choose")
    blocks = read_folder(job.model).spec.layers
    choices = list(vector_choices(blocks, study.pooling, study.layers).values())
    trials: list[Trial] = []
    if study.only != "trained":
        recipe = frozen_recipe(job.recipe, epochs=study.frozen_epochs, rate=study.frozen_lr)
        trials += vector_trials(replace(job, recipe=recipe), choices, execution, mark=mark)
    if study.only != "frozen":
        # The model's own head is a choice, too, where it has one: what other libraries load.
        plain = not study.pooling and not study.layers and job.recipe.head.is_plain
        own = [VectorSettings(pooling="published")] if plain else []
        trials += vector_trials(job, [*own, *choices], execution, mark=mark)
    return trials


def ranked(job: FinetuneJob, results: Sequence[TrialResult]) -> dict[str, Any]:
    """The record of a comparison of vectors: all runs, the best first."""
    figure = job.recipe.best.figure or task_kind(job.task).metric.main
    sign = 1 if figure in LOWER_IS_BETTER else -1

    def place_of(one: TrialResult) -> tuple[bool, float]:
        value = one.figures.get(figure)
        missing = value is None or math.isnan(value)
        return missing, 0.0 if value is None or missing else sign * value

    runs = []
    for one in sorted(results, key=place_of):
        encoder, _, choice = one.name.partition(".")
        pooling, _, layers = choice.partition("-")
        runs.append({"encoder": encoder, "pooling": pooling, "layers": layers, **one.to_json()})
    rows = {"train": len(job.rows.train), "dev": len(job.rows.dev)}
    return {"task": job.task, "figure": figure, "rows": rows, "runs": runs}
