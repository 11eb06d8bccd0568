"""`bertsmith vectors`: every way to make a vector of a text, on one data set, as one table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertsmith.cli.shared.data_options import Reading
from bertsmith.cli.shared.options import spread
from bertsmith.cli.shared.trials_run import RUNS, DevFile, Json, Quiet, RunSettings
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.tasks.model.text_vector import VectorSettings
    from bertsmith.training.execution.execution import Execution
    from bertsmith.training.finetune.finetune import FinetuneJob
    from bertsmith.training.studies.store import Tried
    from bertsmith.training.studies.trials import Trial

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A folder of train, dev and test, or one file.")
]
Model = Annotated[
    str, typer.Option("--model", metavar="MODEL", help="A model folder or a name to start from.")
]
Only = Annotated[
    Literal["frozen", "trained"] | None,
    typer.Option("--only", help="frozen: the encoder stays as it is; trained: it learns, too."),
]
Pooling = Annotated[
    list[str] | None,
    typer.Option("--pooling", help="first, mean, max, attention; repeat. All if unset."),
]
Layers = Annotated[
    list[str] | None,
    typer.Option(
        "--layers",
        help="last, a number (0: the embeddings), sum4, concat4, weighted, all_first; repeat. "
        "All and the last but one if unset.",
    ),
]
RowCount = Annotated[
    int, typer.Option("--rows", min=1, help="Training rows; every label in its share.")
]
DevRows = Annotated[int, typer.Option("--dev-rows", min=2, help="Development rows.")]
Epochs = Annotated[float, typer.Option("--epochs", help="How often each row is read: trained.")]
FrozenEpochs = Annotated[
    float, typer.Option("--frozen-epochs", help="How often each row is read: frozen.")
]
FrozenRate = Annotated[
    float | None,
    typer.Option("--frozen-lr", help="The learning rate of heads alone; by their vectors' size."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Finished rows are kept here; DATA-vectors if unset."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """Which ways are tried, and on how much."""

    only: Only = None
    pooling: Pooling = None
    layers: Layers = None
    rows: RowCount = 1_000
    dev_rows: DevRows = 500
    epochs: Epochs = 2.0
    frozen_epochs: FrozenEpochs = 10.0
    frozen_lr: FrozenRate = None
    dev: DevFile = None
    out: Out = None


@spread
def vectors(
    data: Data,
    model: Model,
    choosing: Choosing,
    reading: Reading,
    settings: RunSettings,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare every way to make a vector of a text: which pooling of which layers, on your rows.

    Each way is tried twice: on the encoder as it is (frozen, vectors as features), and with the
    encoder learning, too (trained). One table, best development figure first. The same command
    goes on where it was; finished rows are not repeated.

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
    note(f"finished rows are kept in {out}", quiet=quiet)
    with kept_in(out) as folder:
        job = _job(data, model, choosing, reading, settings, folder, quiet=quiet)
        choices = _choices(job, choosing)
        with computing(job.recipe, folder, settings.device) as execution:
            trials = _trials(job, choices, choosing, execution, mark)
            tried = run_shown(trials, folder, quiet=quiet).rows
    told = _told(job, tried)
    if as_json:
        write_json({"data": str(data), "model": model, **told})
    else:
        write_lines(_lines(told))


def _job(
    data: Path,
    model: str,
    choosing: Choosing,
    reading: Reading,
    settings: RunSettings,
    folder: Path,
    *,
    quiet: bool,
) -> FinetuneJob:
    from bertsmith.cli.shared.trials_run import read_splits, task_of
    from bertsmith.labeled.split.stratify import some_rows
    from bertsmith.tasks.kinds import task_kind
    from bertsmith.training.finetune.finetune import FinetuneJob

    recipe = settings.read(reading.task, epochs=choosing.epochs)  # mistakes come before reading
    splits = read_splits(data, reading, recipe, folder, dev=choosing.dev, quiet=quiet)
    task = task_of(splits, data)
    kind = task_kind(task)
    if kind.reads == "rows":
        raise ConfigError(f"{task} reads single tokens: there is no vector of a text to choose")
    recipe = settings.read(task, epochs=choosing.epochs)
    return FinetuneJob(
        recipe=recipe,
        task=task,
        model=model,
        train=some_rows(splits.train, choosing.rows, seed=recipe.run.seed),
        dev=some_rows(splits.dev, choosing.dev_rows, seed=recipe.run.seed),
        out=folder / RUNS,
        known=kind.known(splits.train),
    )


def _choices(job: FinetuneJob, choosing: Choosing) -> list[VectorSettings]:
    from bertsmith.folders.read import read_folder
    from bertsmith.tasks.model.vector_choices import vector_choices

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


def _told(job: FinetuneJob, tried: Sequence[Tried]) -> dict[str, Any]:
    """All rows, the best first."""
    from bertsmith.metrics import LOWER_IS_BETTER
    from bertsmith.tasks.kinds import task_kind

    figure = job.recipe.best.figure or task_kind(job.task).metric.main
    sign = 1 if figure in LOWER_IS_BETTER else -1

    def place_of(one: Tried) -> tuple[bool, float]:
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


def _lines(told: dict[str, Any]) -> list[str]:
    from bertsmith.cli.shared.console import duration
    from bertsmith.cli.views.trials import figure_text, shown_figures, table_lines

    runs = told["runs"]
    names = shown_figures(told["task"], runs[0]["figures"], told["figure"])
    rows = [
        [
            f"{run['pooling']} of {run['layers']}",
            run["encoder"],
            *(figure_text(run["figures"].get(name)) for name in names),
            duration(run["seconds"]),
        ]
        for run in runs
    ]
    train, dev = told["rows"]["train"], told["rows"]["dev"]
    lines = [f"{train:,} training rows; figures of {dev:,} development rows, best first:"]
    lines += table_lines(["vector", "encoder", *names, "time"], rows)
    return lines
