"""`bertsmith vectors`: every pooling of every choice of layers on one data set, as one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.options import (
    MODEL,
    TRAINING,
    DataArgument,
    DevFile,
    DevRows,
    Json,
    ModelOption,
    Quiet,
    StudyFolder,
    TrainRows,
    TrialEpochs,
    spread,
)
from bertsmith.cli.shared.trials_run import TrialOptions
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.tasks.model.text_vector import VectorSettings
    from bertsmith.training.execution.execution import Execution
    from bertsmith.training.finetune.finetune import FinetuneJob
    from bertsmith.training.studies.store import TrialResult
    from bertsmith.training.studies.trials import Trial

Only = Annotated[
    Literal["frozen", "trained"] | None,
    typer.Option(
        "--only",
        help="frozen: train heads on a frozen encoder; trained: fine-tune the encoder, too.",
        rich_help_panel=MODEL,
    ),
]
Pooling = Annotated[
    list[str] | None,
    typer.Option(
        "--pooling",
        help="first, mean, max, attention; repeatable. All if unset.",
        rich_help_panel=MODEL,
    ),
]
Layers = Annotated[
    list[str] | None,
    typer.Option(
        "--layers",
        help="last, a number (0: embeddings), sum4, concat4, weighted, all_first; repeatable. "
        "These and the second-to-last if unset.",
        rich_help_panel=MODEL,
    ),
]
FrozenEpochs = Annotated[
    float,
    typer.Option(
        "--frozen-epochs", help="Epochs per run with a frozen encoder.", rich_help_panel=TRAINING
    ),
]
FrozenRate = Annotated[
    float | None,
    typer.Option(
        "--frozen-lr",
        help="Learning rate with a frozen encoder; by the norm of its vectors if unset.",
        rich_help_panel=TRAINING,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """Which text vectors are compared, and on how many rows."""

    only: Only = None
    pooling: Pooling = None
    layers: Layers = None
    rows: TrainRows = 1_000
    dev_rows: DevRows = 500
    epochs: TrialEpochs = 2.0
    frozen_epochs: FrozenEpochs = 10.0
    frozen_lr: FrozenRate = None
    dev: DevFile = None
    out: StudyFolder = None


@spread
def vectors(
    data: DataArgument,
    model: ModelOption,
    choosing: Choosing,
    reading: DataOptions,
    settings: TrialOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare text vectors on your rows: which pooling of which layers works best.

    Each is tried twice: with a frozen encoder (vectors as features), and with fine-tuning. One
    table, best dev metric first. The same command resumes; finished runs are not repeated.

    Examples:

        bertsmith vectors sst2/ --model all-MiniLM-L6-v2

        bertsmith vectors reviews.csv --model bert-base-uncased --only frozen --pooling mean
    """
    from bertsmith.cli.shared.console import note
    from bertsmith.cli.shared.trials_run import (
        computing,
        kept_in,
        run_shown,
        weights_mark,
        write_json,
        write_lines,
    )

    mark = weights_mark(model)
    out = choosing.out or Path(f"{data.resolve().name.partition('.')[0]}-vectors")
    note(f"finished runs are stored in {out}", quiet=quiet)
    with kept_in(out) as folder:
        job = _job(data, model, choosing, reading, settings, folder, quiet=quiet)
        choices = _choices(job, choosing)
        with computing(job.recipe, folder, settings.device) as execution:
            trials = _trials(job, choices, choosing, execution, mark)
            tried = run_shown(trials, folder, quiet=quiet).rows
    record = _record(job, tried)
    if as_json:
        write_json({"data": str(data), "model": model, **record})
    else:
        write_lines(_lines(record))


def _job(
    data: Path,
    model: str,
    choosing: Choosing,
    reading: DataOptions,
    settings: TrialOptions,
    folder: Path,
    *,
    quiet: bool,
) -> FinetuneJob:
    from bertsmith.cli.shared.trials_run import read_splits, small_job, task_of
    from bertsmith.tasks.kinds import task_kind

    recipe = settings.read(reading.task, epochs=choosing.epochs)  # fails before the data is read
    splits = read_splits(data, reading, recipe, folder, dev=choosing.dev, quiet=quiet)
    task = task_of(splits, data)
    if task_kind(task).reads == "rows":
        raise ConfigError(f"{task} reads single tokens: there is no text vector to choose")
    recipe = settings.read(task, epochs=choosing.epochs)
    rows = (choosing.rows, choosing.dev_rows)
    return small_job(recipe, task, model, splits, rows, folder)


def _choices(job: FinetuneJob, choosing: Choosing) -> list[VectorSettings]:
    from bertsmith.folders.read import read_folder
    from bertsmith.tasks.model.text_vector import vector_choices

    blocks = read_folder(job.model).spec.layers
    found = vector_choices(blocks, choosing.pooling or (), choosing.layers or ())
    return list(found.values())


def _trials(
    job: FinetuneJob,
    choices: Sequence[VectorSettings],
    choosing: Choosing,
    execution: Execution,
    mark: str,
) -> list[Trial]:
    """One run for each choice, with a frozen and with a trained encoder."""
    from bertsmith.tasks.model.text_vector import VectorSettings
    from bertsmith.training.studies.vectors import frozen_recipe, vector_trials

    found: list[Trial] = []
    if choosing.only != "trained":
        recipe = frozen_recipe(job.recipe, epochs=choosing.frozen_epochs, rate=choosing.frozen_lr)
        found += vector_trials(replace(job, recipe=recipe), choices, execution, mark=mark)
    if choosing.only != "frozen":
        # The model's own head is a choice, too, where it has one: what other libraries load.
        plain = not choosing.pooling and not choosing.layers and job.recipe.head.is_plain
        own = [VectorSettings(pooling="published")] if plain else []
        found += vector_trials(job, [*own, *choices], execution, mark=mark)
    return found


def _record(job: FinetuneJob, tried: Sequence[TrialResult]) -> dict[str, Any]:
    """All rows, the best first."""
    from bertsmith.metrics import LOWER_IS_BETTER
    from bertsmith.tasks.kinds import task_kind

    figure = job.recipe.best.figure or task_kind(job.task).metric.main
    sign = 1 if figure in LOWER_IS_BETTER else -1

    def place_of(one: TrialResult) -> tuple[bool, float]:
        value = one.figures.get(figure)
        missing = value is None or math.isnan(value)
        return missing, 0.0 if value is None or missing else sign * value

    rows = []
    for one in sorted(tried, key=place_of):
        encoder, _, choice = one.name.partition(".")
        pooling, _, layers = choice.partition("-")
        rows.append({"encoder": encoder, "pooling": pooling, "layers": layers, **one.to_json()})
    return {
        "task": job.task,
        "figure": figure,
        "rows": {"train": len(job.train), "dev": len(job.dev)},
        "runs": rows,
    }


def _lines(record: dict[str, Any]) -> list[str]:
    from bertsmith.cli.shared.console import duration
    from bertsmith.cli.views.trials import figure_text, shown_figures, table_lines

    runs = record["runs"]
    names = shown_figures(record["task"], runs[0]["figures"], record["figure"])
    rows = [
        [
            f"{run['pooling']} of {run['layers']}",
            run["encoder"],
            *(figure_text(run["figures"].get(name)) for name in names),
            duration(run["seconds"]),
        ]
        for run in runs
    ]
    train, dev = record["rows"]["train"], record["rows"]["dev"]
    lines = [f"{train:,} training rows; metrics of {dev:,} dev rows, best first:"]
    lines += table_lines(["vector", "encoder", *names, "time"], rows)
    return lines
