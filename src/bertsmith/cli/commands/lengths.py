"""`bertsmith lengths`: text lengths in tokens, and which truncation suits long texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.options import DevRows, Json, ModelOption, Quiet, TrainRows
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.studies import StudyOptions
from bertsmith.setting import TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.studies.lengths import Verdict
    from bertsmith.training.kind import TrainingRequest
    from bertsmith.training.kinds.labeled.learner import FinetuneJob
    from bertsmith.training.repeat.trials import TrialResult

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="File, or folder with train, dev and test files.")
]
Compare = Annotated[
    bool,
    Setting(
        "Train with each way of truncation (head, tail, head+tail, windows) and compare.", TRAINING
    ),
]
WithWindows = Annotated[
    bool | None,
    Setting(
        "With --compare: also overlapping windows; if unset, where texts are 2 to 6 times too "
        "long.",
        TRAINING,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparing(StudyOptions):
    """How the ways of truncation are compared."""

    train_rows: TrainRows = 600
    dev_rows: DevRows = 400
    compare: Compare = False
    windows: WithWindows = None


@spread
def lengths(
    data: Data,
    model: ModelOption,
    comparing: Comparing,
    reading: DataOptions,
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
    from bertsmith.cli.shared.console import write_json, write_lines

    request = comparing.request(data, model, reading)
    if comparing.compare:
        record, lines = _compared(request, comparing, quiet=quiet)
    else:
        record, lines = _measured(request)
    if as_json:
        write_json(record)
    else:
        write_lines(lines)


def _measured(request: TrainingRequest) -> tuple[dict[str, Any], list[str]]:
    """The table of all rows, labeled or not."""
    from bertsmith.api.studies import measure_lengths

    table, limit = measure_lengths(request)
    lines = table.lines(limit)
    if table.cut(limit):
        lines.append(f"nearly all rows fit into {table.suggested} tokens")
    return {"data": str(request.data), "lengths": table.to_json(limit)}, lines


def _compared(
    request: TrainingRequest, comparing: Comparing, *, quiet: bool
) -> tuple[dict[str, Any], list[str]]:
    """The table, the runs, and which one is best."""
    from bertsmith.api.studies import length_trials, small_job, weights_mark
    from bertsmith.cli.shared.studies import studying
    from bertsmith.evaluation.length_table import length_table
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.training.kinds.labeled.kind import labeled_recipe

    mark = weights_mark(request.model)
    rows = (comparing.train_rows, comparing.dev_rows)
    settings = labeled_recipe(request).run
    with studying(settings, comparing.out, device=request.device, quiet=quiet) as study:
        own = replace(request, out=study.folder)
        job, splits = small_job(own, rows, study.execution, study.observer)
        table = length_table(splits, load_tokenizer(request.model))
        done = study.run(
            length_trials(job, table, study.execution, windows=comparing.windows, mark=mark)
        )
    limit = job.recipe.length.max_length
    compared, lines = _verdict(job, done.rows) if done.rows else (None, [_nothing(limit)])
    record = {
        "data": str(request.data),
        "lengths": table.to_json(limit),
        "compare": compared,
    }
    return record, [*table.lines(limit), *lines]


def _nothing(limit: int) -> str:
    return f"no row is longer than {limit} tokens: nothing to compare"


def _verdict(job: FinetuneJob, tried: Sequence[TrialResult]) -> tuple[dict[str, Any], list[str]]:
    """Which run is best, as JSON and as lines."""
    from bertsmith.studies.lengths import verdict
    from bertsmith.training.kinds.labeled.learner import job_task
    from bertsmith.wording import counted

    recipe, limit = job.recipe, job.recipe.length.max_length
    result = verdict(job_task(job), job.rows.dev, tried, figure=recipe.best.figure)
    record = {
        "max_length": limit,
        "rows": {"train": len(job.rows.train), "dev": len(job.rows.dev)},
        "epochs": recipe.plan.epochs,
        "seed": recipe.run.seed,
        "runs": [one.to_json() for one in tried],
        **result.to_json(),
    }
    head = f"max length {limit}, {counted(len(job.rows.train), 'training row')}, "
    dev = counted(len(job.rows.dev), "dev row")
    head += f"{counted(recipe.plan.epochs, 'epoch')}; metrics of {dev}:"
    return record, ["", head, *_table(job.task, tried, result), *result.words()]


def _table(task: str, tried: Sequence[TrialResult], result: Verdict) -> list[str]:
    from bertsmith.cli.shared.console import table_lines
    from bertsmith.cli.shared.studies import figure_text, shown_figures
    from bertsmith.wording import duration

    names = shown_figures(task, tried[0].figures, result.figure)
    heads = ["", *names, "time", "difference to the best", "95 % interval", "p", "significant"]
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
