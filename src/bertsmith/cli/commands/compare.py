"""`bertsmith compare`: whether one fine-tuned model is significantly better than another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.console import note, write_json, write_lines
from bertsmith.cli.shared.data_options import DataOptions
from bertsmith.cli.shared.inference import EvaluationOptions, load_fine_tuned
from bertsmith.cli.shared.options import Json, Quiet
from bertsmith.cli.shared.options_of import spread
from bertsmith.errors import ConfigError
from bertsmith.setting import OUTPUT, Setting

if TYPE_CHECKING:
    from bertsmith.runtime.predictor import Predictor

What = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR_A DIR_B FILE", help="Two fine-tuned model folders and a labeled file."
    ),
]
Figure = Annotated[
    str | None,
    Setting("Metric to compare; the main metric of the task if unset.", OUTPUT, metavar="METRIC"),
]
Samples = Annotated[int, Setting("Number of bootstrap samples.", OUTPUT, min=100)]


@spread
def compare(
    what: What,
    reading: DataOptions,
    computing: EvaluationOptions,
    figure: Figure = None,
    samples: Samples = 1_000,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two fine-tuned models on labeled rows: difference, interval and significance.

    Both predict every row. A paired bootstrap gives the interval of the difference, and a sign test
    counts the rows that only one of them gets right.

    Examples:

        bertsmith compare small-model large-model test.tsv

        bertsmith compare model-a model-b test.tsv --figure f1_macro --json
    """
    from bertsmith.api.evaluate import labeled_rows, predict_all
    from bertsmith.cli.views.observer import ConsoleObserver
    from bertsmith.evaluation.comparison import compare as compared

    if len(what) != 3:
        raise ConfigError(
            "give two fine-tuned folders and a file of labeled rows: "
            "bertsmith compare model-a model-b test.tsv"
        )
    folders, path = what[:2], Path(what[2])
    first, second = _loaded(folders, computing, quiet=quiet)
    _check(first, second, folders)
    observer = ConsoleObserver(quiet=quiet)
    examples = labeled_rows(
        folders[0], first, path, reading.labeled(), on_error=reading.on_error, observer=observer
    )
    predictions = [
        predict_all(model, examples, f"predict {Path(folder).name}", observer)
        for model, folder in zip((first, second), folders, strict=True)
    ]
    comparison = compared(first.task, examples, *predictions, figure=figure, samples=samples)
    if as_json:
        record = {"first_model": folders[0], "second_model": folders[1], "file": str(path)}
        write_json(record | comparison.to_json())
    else:
        write_lines(comparison.words(*_short(folders)))


def _loaded(folders: list[str], computing: EvaluationOptions, *, quiet: bool) -> list[Predictor]:
    """Both models; --ensemble applies to the folders that hold several runs."""
    from bertsmith.folders.runs import finished_runs
    from bertsmith.runtime.ensemble import Ensemble

    single = replace(computing, ensemble=False)
    several = [bool(finished_runs(Path(folder))) for folder in folders]
    models = []
    for folder, runs in zip(folders, several, strict=True):
        how = computing if runs or not any(several) else single
        model = load_fine_tuned(folder, how, quiet=quiet)
        if isinstance(model, Ensemble):
            note(f"{folder}: the mean of {len(model.members)} runs", quiet=quiet)
        models.append(model)
    return models


def _check(first: Predictor, second: Predictor, folders: list[str]) -> None:
    from bertsmith.labeled.example import TARGETS

    one, two = first.task, second.task
    if one.name != two.name:
        raise ConfigError(
            f"{folders[0]} is a {one.name} model, {folders[1]} a {two.name} model; only models of "
            "one task can be compared"
        )
    odd = sorted(set(one.labels) ^ set(two.labels))
    if TARGETS[one.kind.target].named and odd:
        raise ConfigError(
            f"only one of {folders[0]} and {folders[1]} knows the label {odd[0]!r}; only models "
            "with the same labels can be compared"
        )


def _short(folders: list[str]) -> list[str]:
    """Names for people: the last part of each path if that tells them apart."""
    names = [Path(folder).name for folder in folders]
    return names if names[0] != names[1] and all(names) else folders
