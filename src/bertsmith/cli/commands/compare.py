"""`bertsmith compare`: whether one fine-tuned model really beats another on the same rows."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertsmith.cli.shared.data_options import Reading
from bertsmith.cli.shared.fine_tuned import ExactComputing, ask_all, load_fine_tuned
from bertsmith.cli.shared.options import spread
from bertsmith.errors import ConfigError

if TYPE_CHECKING:
    from bertsmith.runtime.predictor import Predictor

What = Annotated[
    list[str],
    typer.Argument(metavar="DIR_A DIR_B FILE", help="Two fine-tuned folders, and labeled rows."),
]
Figure = Annotated[
    str | None,
    typer.Option("--figure", help="What to compare by; the task's main figure if unset."),
]
Samples = Annotated[int, typer.Option("--samples", min=100, help="Draws of the bootstrap.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Only errors and the result.")]


@spread
def compare(
    what: What,
    reading: Reading,
    computing: ExactComputing,
    figure: Figure = None,
    samples: Samples = 1_000,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare two fine-tuned models on labeled rows: by how much, and could it be chance?

    Both answer every row; a paired bootstrap tells how far the difference of their figures strays,
    and a test over the rows that only one of them gets right counts both ways.

    Examples:

        bertsmith compare small-model large-model test.tsv

        bertsmith compare model-a model-b test.tsv --figure f1_macro --json
    """
    from bertsmith.cli.commands.evaluate import rows_for
    from bertsmith.evaluation.comparison import compare as compared

    if len(what) != 3:
        raise ConfigError(
            "give two fine-tuned folders and a file of labeled rows: "
            "bertsmith compare model-a model-b test.tsv"
        )
    folders, path = what[:2], Path(what[2])
    first, second = _loaded(folders, computing, quiet=quiet)
    _check(first, second, folders)
    examples = rows_for(folders[0], first, path, reading, quiet=quiet)
    said = [
        ask_all(model, examples, f"ask {Path(folder).name}", quiet=quiet)
        for model, folder in zip((first, second), folders, strict=True)
    ]
    found = compared(first.task, examples, *said, figure=figure, samples=samples)
    if as_json:
        told = {"first_model": folders[0], "second_model": folders[1], "file": str(path)}
        text = json.dumps(told | found.to_json(), ensure_ascii=False, indent=2)
    else:
        from bertsmith.cli.app import printable

        text = printable("\n".join(found.words(*_short(folders))))
    sys.stdout.write(text + "\n")


def _loaded(folders: list[str], computing: ExactComputing, *, quiet: bool) -> list[Predictor]:
    """Both models; with --ensemble, the folders that hold several runs answer with all of them."""
    from bertsmith.cli.shared.console import note
    from bertsmith.runtime.ensemble import Ensemble, has_runs

    single = replace(computing, ensemble=False)
    several = [has_runs(Path(folder)) for folder in folders]
    found = []
    for folder, runs in zip(folders, several, strict=True):
        how = computing if runs or not any(several) else single
        model = load_fine_tuned(folder, how, quiet=quiet)
        if isinstance(model, Ensemble):
            note(f"{folder}: the mean of {len(model.members)} runs", quiet=quiet)
        found.append(model)
    return found


def _check(first: Predictor, second: Predictor, folders: list[str]) -> None:
    from bertsmith.labeled.targets import TARGETS

    one, two = first.task, second.task
    if one.name != two.name:
        raise ConfigError(
            f"{folders[0]} answers {one.name}, {folders[1]} answers {two.name}; only models of one "
            "task can be compared"
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
