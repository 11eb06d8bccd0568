"""`bertsmith lengths`: text lengths in tokens, and which truncation suits long texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.options import (
    TRAINING,
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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bertsmith.tasks.length import LengthSettings
    from bertsmith.training.finetune.finetune import FinetuneJob
    from bertsmith.training.studies.lengths import Verdict
    from bertsmith.training.studies.store import TrialResult

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="File, or folder with train, dev and test files.")
]
Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Train with each way of truncation (head, tail, head+tail, windows) and compare.",
        rich_help_panel=TRAINING,
    ),
]
WithWindows = Annotated[
    bool | None,
    typer.Option(
        "--windows/--no-windows",
        help="With --compare: also overlapping windows; if unset, where texts are 2 to 6 times too "
        "long.",
        rich_help_panel=TRAINING,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing:
    """How the ways of truncation are compared."""

    compare: Compare = False
    windows: WithWindows = None
    rows: TrainRows = 600
    dev_rows: DevRows = 400
    epochs: TrialEpochs = 2.0
    dev: DevFile = None
    out: StudyFolder = None


@spread
def lengths(
    data: Data,
    model: ModelOption,
    comparing: Comparing,
    reading: DataOptions,
    settings: TrialOptions,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show the lengths of rows in tokens, and how many rows each limit would truncate.

    With --compare, one small model is trained per way of truncation (same rows, seed and epochs)
    and evaluated on the dev rows: which is best, and is the difference significant?

    Examples:

        bertsmith lengths reviews.csv --model all-MiniLM-L6-v2

        bertsmith lengths imdb/ --model all-MiniLM-L6-v2 --compare --max-length 128
    """
    from bertsmith.cli.shared.trials_run import kept_in, write_json, write_lines

    if comparing.compare:
        with kept_in(comparing.out) as folder:
            record, lines = _compared(
                data, model, comparing, reading, settings, folder, quiet=quiet
            )
    else:
        record, lines = _measured(data, model, reading, settings)
    if as_json:
        write_json(record)
    else:
        write_lines(lines)


def _measured(
    data: Path, model: str, reading: DataOptions, settings: TrialOptions
) -> tuple[dict[str, Any], list[str]]:
    """The table of all rows, labeled or not."""
    from bertsmith.evaluation.length_table import length_table
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.labeled.guess.guess_spec import guess_spec
    from bertsmith.labeled.read.reader import read_examples
    from bertsmith.labeled.split.splits import split_files

    tokenizer = load_tokenizer(model)
    files = split_files(data)[0] if data.is_dir() else {data.name: data}
    given, task = reading.labeled(), reading.task
    rows = {}
    for name, path in files.items():
        spec = guess_spec(path, given=given)
        rows[name] = list(read_examples(path, spec, on_error=reading.on_error))
        task = task or spec.task
    length = settings.read(task).length
    table = length_table(rows, tokenizer, windows=length.stride is not None)
    lines = table.lines(length.max_length)
    if table.cut(length.max_length):
        lines.append(f"nearly all rows fit into {table.suggested} tokens")
    return {"data": str(data), "lengths": table.to_json(length.max_length)}, lines


def _compared(
    data: Path,
    model: str,
    comparing: Comparing,
    reading: DataOptions,
    settings: TrialOptions,
    folder: Path,
    *,
    quiet: bool,
) -> tuple[dict[str, Any], list[str]]:
    """The table, the runs, and which one is best."""
    from bertsmith.cli.shared.trials_run import (
        computing,
        read_splits,
        run_shown,
        small_job,
        task_of,
        weights_mark,
    )
    from bertsmith.evaluation.length_table import length_table
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.training.studies.lengths import length_choices, window_cost
    from bertsmith.training.studies.trials import finetune_trial

    mark = weights_mark(model)
    recipe = settings.read(reading.task, epochs=comparing.epochs)  # fails before the data is read
    splits = read_splits(data, reading, recipe, folder, dev=comparing.dev, quiet=quiet)
    task = task_of(splits, data)
    recipe = settings.read(task, epochs=comparing.epochs)
    table = length_table(splits, load_tokenizer(model))
    limit = recipe.length.max_length
    record: dict[str, Any] = {"data": str(data), "lengths": table.to_json(limit), "compare": None}
    lines = table.lines(limit)
    fields = len(splits.train[0].texts)
    choices = length_choices(
        recipe.length, table, task=task, fields=fields, windows=comparing.windows
    )
    if not choices:
        return record, [*lines, f"no row is longer than {limit} tokens: nothing to compare"]
    job = small_job(recipe, task, model, splits, (comparing.rows, comparing.dev_rows), folder)
    costs = {"windows": window_cost(table, limit)}
    with computing(recipe, folder, settings.device) as execution:
        trials = [
            finetune_trial(
                name,
                _with_length(job, name, length),
                execution,
                mark=mark,
                cost=costs.get(name, 1.0),
            )
            for name, length in choices.items()
        ]
        tried = run_shown(trials, folder, quiet=quiet).rows
    record["compare"], words = _verdict(job, tried)
    return record, [*lines, "", *words]


def _with_length(job: FinetuneJob, name: str, length: LengthSettings) -> FinetuneJob:
    """The same job with another truncation, in a folder of its own."""
    from bertsmith.config import changed

    recipe = changed(job.recipe, {"length": length})
    return replace(job, recipe=recipe, out=job.folder / name)


def _verdict(job: FinetuneJob, tried: Sequence[TrialResult]) -> tuple[dict[str, Any], list[str]]:
    """Which run is best, as JSON and as lines."""
    from bertsmith.training.finetune.finetune import job_task
    from bertsmith.training.studies.lengths import verdict

    recipe, limit = job.recipe, job.recipe.length.max_length
    result = verdict(job_task(job), job.dev, tried, figure=recipe.best.figure)
    record = {
        "max_length": limit,
        "rows": {"train": len(job.train), "dev": len(job.dev)},
        "epochs": recipe.plan.epochs,
        "seed": recipe.run.seed,
        "runs": [one.to_json() for one in tried],
        **result.to_json(),
    }
    head = f"max length {limit}, {len(job.train):,} training rows, {recipe.plan.epochs:g} epochs; "
    head += f"metrics of {len(job.dev):,} dev rows:"
    return record, [head, *_table(job.task, tried, result), *result.words()]


def _table(task: str, tried: Sequence[TrialResult], result: Verdict) -> list[str]:
    from bertsmith.cli.shared.console import duration
    from bertsmith.cli.views.trials import figure_text, shown_figures, table_lines

    names = shown_figures(task, tried[0].figures, result.figure)
    heads = [
        "",
        *names,
        "time",
        "difference to the best",
        "95 % interval",
        "p",
        "significant",
    ]
    rows = []
    for one in tried:
        cells = [one.name, *(figure_text(one.figures.get(name)) for name in names)]
        cells.append(duration(one.seconds))
        if one.name == result.best:
            cells += ["best", "", "", ""]
        else:
            against = result.against[one.name]
            gap = against.difference
            cells += [f"{gap.value:+.4f}", f"{gap.low:+.4f} to {gap.high:+.4f}", f"{gap.p:.3f}"]
            cells.append("yes" if against.winner == 1 else "no")
        rows.append(cells)
    return table_lines(heads, rows)
