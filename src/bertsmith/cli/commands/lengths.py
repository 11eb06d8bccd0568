"""`bertsmith lengths`: text lengths in tokens, and which truncation suits long texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.options import DevRows, Json, ModelOption, Quiet, TrainRows
from bertsmith.cli.shared.options_of import spread
from bertsmith.cli.shared.studies import StudyOptions
from bertsmith.setting import TRAINING, Setting

if TYPE_CHECKING:
    from bertsmith.cli.shared.studies import StudyProcess
    from bertsmith.studies.lengths import LengthStudy
    from bertsmith.training.kind import TrainingRequest

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
    request = comparing.request(data, model, reading)
    if comparing.compare:
        _compare(request, comparing, as_json=as_json, quiet=quiet)
    else:
        _print_lengths(request, as_json=as_json)


def _compare(request: TrainingRequest, comparing: Comparing, *, as_json: bool, quiet: bool) -> None:
    """Train with each way of truncation."""
    from bertsmith.api.studies import small_job
    from bertsmith.cli.shared.studies import StudyCommand
    from bertsmith.evaluation.length_table import length_table
    from bertsmith.folders.read import load_tokenizer
    from bertsmith.studies.lengths import LengthStudy
    from bertsmith.studies.study import weights_mark
    from bertsmith.training.kinds.labeled.kind import labeled_recipe

    mark = weights_mark(request.model)
    rows = (comparing.train_rows, comparing.dev_rows)

    def make(process: StudyProcess) -> LengthStudy:
        own = replace(request, out=process.folder)
        job, splits = small_job(own, rows, process.execution, process.observer)
        return LengthStudy(
            data=request.data,
            folder=process.folder,
            job=job,
            table=length_table(splits, load_tokenizer(request.model)),
            windows=comparing.windows,
            mark=mark,
        )

    StudyCommand(
        run=labeled_recipe(request).run,
        out=comparing.out,
        as_json=as_json,
        quiet=quiet,
        device=request.device,
    ).print(make)


def _print_lengths(request: TrainingRequest, *, as_json: bool) -> None:
    """The table of all rows, labeled or not."""
    from bertsmith.api.studies import measure_lengths
    from bertsmith.cli.shared.console import write_json, write_lines

    table, limit = measure_lengths(request)
    if as_json:
        write_json({"data": str(request.data), "lengths": table.to_json(limit)})
        return
    lines = table.lines(limit)
    if table.cut(limit):
        lines.append(f"nearly all rows fit into {table.suggested} tokens")
    write_lines(lines)
